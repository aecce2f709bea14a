"""Kubernetes quantities: ``500m``, ``4Gi``, ``1e3``, exactly.

A quantity is a ``Fraction`` here: no rounding error, and plain arithmetic. As in
Kubernetes nothing is finer than a thousand-millionth (finer values round away from zero)
and nothing is larger than 2^63 - 1 (larger values count as that).
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from hekla.domain.errors import InvalidError

LARGEST: Final = 2**63 - 1

_NANOS: Final = 10**9
_LONGEST: Final = 128
"""Characters; no honest quantity comes near, and it bounds what parsing may cost."""
_EXPONENT_BOUND: Final = 200
"""Beyond it any mantissa of ``_LONGEST`` digits is over the largest or under the finest."""

_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?",
    re.ASCII,
)
_SUFFIXES: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SMALL: Final = (("", 1), ("m", 10**3), ("u", 10**6), ("n", 10**9))


def parse(value: str | int | float) -> Fraction:
    """The number that a quantity as found in JSON or YAML stands for.

    Raises:
        InvalidError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidError(f"must be a quantity such as 500m or 4Gi, is {_shown(value)}")
    if isinstance(value, int):
        return Fraction(max(-LARGEST, min(value, LARGEST)))
    # The shortest decimal that gives a float back is what its author wrote.
    return _parse(value if isinstance(value, str) else repr(value))


@lru_cache(maxsize=8192)
def _parse(text: str) -> Fraction:
    if len(text) > _LONGEST:
        raise InvalidError(f"must be a quantity, is a text of {len(text)} characters")
    found = _GRAMMAR.fullmatch(text)
    if found is None or not (found["whole"] or found["part"]):
        raise InvalidError(f"must be a quantity such as 500m or 4Gi, is {text!r}")
    part = found["part"] or ""
    value = Fraction(int(found["whole"] + part), 10 ** len(part))
    if found["suffix"] is not None:
        value *= _SUFFIXES[found["suffix"]]
    elif found["exponent"] is not None:
        exponent = max(-_EXPONENT_BOUND, min(int(found["exponent"]), _EXPONENT_BOUND))
        value *= Fraction(10) ** exponent
    value = min(Fraction(ceil(value, per=_NANOS), _NANOS), Fraction(LARGEST))
    return -value if found["sign"] == "-" else value


def ceil(value: Fraction, *, per: int = 1) -> int:
    """``value`` in units of ``1/per``, rounded up."""
    return -(-value.numerator * per // value.denominator)


def format(value: Fraction | int, *, binary: bool = False) -> str:  # noqa: A001
    """The shortest exact way to write a quantity, with binary suffixes where asked for.

    Raises:
        InvalidError: the value is finer than a quantity can be.
    """
    exact = Fraction(value)
    if exact.denominator == 1:
        step, suffixes = (1024, _BINARY) if binary else (1000, _DECIMAL)
        return _with_suffix(exact.numerator, step, suffixes)
    for suffix, scale in _SMALL:
        scaled = exact * scale
        if scaled.denominator == 1:
            return f"{scaled.numerator}{suffix}"
    raise InvalidError(f"{exact} is finer than a quantity can be")


def _with_suffix(number: int, step: int, suffixes: tuple[str, ...]) -> str:
    power = 0
    while number and number % step == 0 and power + 1 < len(suffixes):
        number //= step
        power += 1
    return f"{number}{suffixes[power]}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"

"""What an unquoted word in YAML means, as kubectl reads it.

That is YAML 1.1 without sexagesimals: ``yes`` and ``on`` are booleans, ``0644`` is octal,
``1_000`` is a thousand. Times stay texts. A fraction that is whole is an integer, since that
is what it becomes on its way through JSON.
"""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final[dict[str, bool | None]] = (
    dict.fromkeys(("y", "Y", "yes", "Yes", "YES"), True)
    | dict.fromkeys(("true", "True", "TRUE", "on", "On", "ON"), True)
    | dict.fromkeys(("n", "N", "no", "No", "NO"), False)
    | dict.fromkeys(("false", "False", "FALSE", "off", "Off", "OFF"), False)
    | dict.fromkeys(("", "~", "null", "Null", "NULL"), None)
)
_NUMBERS_WITHOUT_DIGITS: Final = {
    word: number
    for number, words in (
        ("nan", (".nan", ".NaN", ".NAN")),
        ("inf", (".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF")),
        ("-inf", ("-.inf", "-.Inf", "-.INF")),
    )
    for word in words
}
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:(?P<decimal>0|[1-9][0-9]*)|0[xX](?P<hex>[0-9a-fA-F]+)"
    r"|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+))"
)
_BASES: Final = {"decimal": 10, "hex": 16, "binary": 2, "octal": 8}
_FRACTION: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"([Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_LONGEST_INTEGER: Final = 100
"""Characters. No longer one fits what may be stored, and reading it costs its square."""
_LARGEST_WHOLE: Final = 1e15


def resolve(word: str) -> str | int | float | bool | None:
    """The value of an unquoted word."""
    if word in _WORDS:
        return _WORDS[word]
    if word in _NUMBERS_WITHOUT_DIGITS:
        return float(_NUMBERS_WITHOUT_DIGITS[word])
    first = word[0]
    if first == ".":
        return whole(float(word)) if _FRACTION.fullmatch(word) else word
    if first not in "+-0123456789" or _TIME.fullmatch(word):
        return word
    return _number(word)


def whole(number: float) -> int | float:
    """A fraction as JSON has it: an integer if it is one."""
    return int(number) if abs(number) < _LARGEST_WHOLE and number.is_integer() else number


def _number(word: str) -> str | int | float:
    plain = word.replace("_", "")
    found = _INTEGER.fullmatch(plain) if len(plain) <= _LONGEST_INTEGER else None
    if found is not None and found.lastgroup is not None:
        number = int(found[found.lastgroup], _BASES[found.lastgroup])
        return -number if found["sign"] == "-" else number
    if _FRACTION.fullmatch(plain):
        fraction = float(plain)
        # One that is too large for a fraction is a text, as it is to kubectl.
        return word if fraction in (float("inf"), float("-inf")) else whole(fraction)
    return word

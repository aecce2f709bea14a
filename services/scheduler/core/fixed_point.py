"""Scores as integers: the same arithmetic for one node and for arrays of them.

Every function takes Python integers and ``int64`` arrays alike and gives the same digits
for both, so that equal input gives equal placement.
"""

from __future__ import annotations

from typing import Final, TypeVar

from services.scheduler.core.nodes import Ints

SCORE_UNIT: Final = 1 << 20
"""One, in fixed point."""

_COARSE_FROM: Final = 1 << 42
_COARSE_SHIFT: Final = 8

Amount = TypeVar("Amount", int, Ints)


def fraction(part: Amount, whole: Amount) -> Amount:
    """``part / whole`` in ``SCORE_UNIT``, rounded down; zero where ``whole`` is.

    Neither may be below zero or above ``nodes.LARGEST``, ``part`` not above ``whole``.
    """
    # Amounts of 2**42 and more lose their last bits, else the product would overflow.
    shift = (whole >= _COARSE_FROM) * _COARSE_SHIFT
    divisor = whole >> shift
    quotient: Amount = ((part >> shift) * SCORE_UNIT) // (divisor + (divisor == 0))
    return quotient

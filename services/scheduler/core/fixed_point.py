"""Scores as integers: the same arithmetic for one node and for arrays of them.

Every function takes Python integers and ``int64`` arrays alike and gives the same digits
for both, so that equal input gives equal placement.
"""

from __future__ import annotations

from typing import Final, overload

import numpy as np

from services.scheduler.core.nodes import Ints

SCORE_UNIT: Final = 1 << 20
"""One, in fixed point."""


@overload
def fraction(part: int, whole: int) -> int: ...
@overload
def fraction(part: Ints, whole: Ints) -> Ints: ...
def fraction(part: int | Ints, whole: int | Ints) -> int | Ints:
    """``part / whole`` in ``SCORE_UNIT``, rounded down; at most one, and 0 of nothing.

    ``whole`` is not above ``nodes.LARGEST``: a double holds such integers exactly, IEEE 754
    leaves one result for their quotient, and the unit is a power of two.
    """
    if isinstance(part, int) and isinstance(whole, int):
        return int(min(part, whole) / max(whole, 1) * SCORE_UNIT)
    quotient = np.divide(np.minimum(part, whole), np.maximum(whole, 1))
    quotient *= SCORE_UNIT
    return quotient.astype(np.int64)

"""How long to wait before trying again."""

from __future__ import annotations

import random
from typing import Final

FIRST: Final = 0.05  # seconds
LONGEST: Final = 5.0  # seconds


def backoff(failures: int) -> float:
    """Seconds to wait after so many failures in a row: doubling, bounded, spread by half."""
    longest = min(LONGEST, FIRST * 2.0 ** min(failures - 1, 16))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

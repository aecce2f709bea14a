"""Placements that can be taken back: the undo log over the world's arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from services.scheduler.core.classes import PodClass
from services.scheduler.core.groups import Hold
from services.scheduler.core.occupancy import Occupancy

_FEW: Final = 8


@dataclass(frozen=True, slots=True)
class _Put:
    klass: PodClass
    rows: Sequence[int]
    """Each once."""
    copies: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Lift:
    hold: Hold


class Transaction:
    """Counts pods onto nodes, remembers each step, and undoes the last ones on request."""

    def __init__(self, occupancy: Occupancy) -> None:
        self._occupancy = occupancy
        self._log: list[_Put | _Lift] = []

    def mark(self) -> int:
        """The present, to come back to."""
        return len(self._log)

    def put(self, klass: PodClass, rows: Sequence[int]) -> None:
        """Count a pod of the class onto each of ``rows``; a row may come repeatedly."""
        if not rows:
            return
        counts = Counter(rows)
        step = _Put(klass, list(counts), list(counts.values()))
        self._count(step, 1)
        self._log.append(step)

    def lift(self, holds: Iterable[Hold]) -> None:
        """Make room that is kept free to use."""
        for hold in holds:
            self._occupancy.count_hold(hold, -1)
            self._log.append(_Lift(hold))

    def keep(self) -> None:
        """What was done so far is done for good."""
        self._log.clear()

    def undo(self, mark: int) -> None:
        """Take back everything since ``mark``, last first."""
        while len(self._log) > mark:
            match self._log.pop():
                case _Put() as step:
                    self._count(step, -1)
                case _Lift(hold):
                    self._occupancy.count_hold(hold, 1)

    def _count(self, step: _Put, by: int) -> None:
        nodes = self._occupancy.nodes
        if len(step.rows) <= _FEW:
            for row, copies in zip(step.rows, step.copies, strict=True):
                for column, amount in step.klass.columns:
                    nodes.used[row, column] += by * copies * amount
        else:
            rows = np.array(step.rows, np.intp)
            counts = np.array(step.copies, np.int64) * by
            for column, amount in step.klass.columns:
                nodes.used[rows, column] += counts * amount
        nodes.touch_all(step.rows)
        if self._occupancy.trackers_of(step.klass):
            for row, copies in zip(step.rows, step.copies, strict=True):
                self._occupancy.track_copies(step.klass, row, by * copies)

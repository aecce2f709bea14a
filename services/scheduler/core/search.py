"""Looks for any arrangement of a gang, where placing its pods one by one found none.

What one node can take of the gang is a set of vectors: so many pods of each class. A gang
fits if one vector from each node's set adds up to its whole demand. There are few
different vectors (256 at most for 4 classes and 12 pods), so which partial demands can be
covered is a set of few bits, worked through node by node: exact, without trying orders.
Among all arrangements the one is taken that gives each pod in turn the best node from
which the rest can still be placed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final, NamedTuple

import numpy as np

from services.scheduler.core.classes import PodClass
from services.scheduler.core.load import Load
from services.scheduler.core.nodes import Ints, Mask, Rows
from services.scheduler.core.placement import NOWHERE, Candidates, Placer

ALWAYS_CLASSES: Final = 4
ALWAYS_PODS: Final = 12
"""Gangs up to this size are searched to the end; larger ones within ``STEPS``."""

STEPS: Final = 200_000
_WIDEST: Final = 1 << 12
_CELLS: Final = 1 << 21
"""How many answers are asked of filters at once."""
_MOST_CELLS: Final = 1 << 23
"""How many are asked in all for a gang that need not be searched to the end."""

Demand = Sequence[tuple[PodClass, int]]


class Found(NamedTuple):
    """An arrangement, counted on the nodes already."""

    rows: list[list[int]]
    """For each class of the demand the row of each pod."""


class Impossible(NamedTuple):
    """Proven: no arrangement exists."""


class GaveUp(NamedTuple):
    """None was found within so many steps."""

    steps: int


def arrange(placer: Placer, demand: Demand) -> Found | Impossible | GaveUp:
    """Place the whole demand, in whatever way it fits.

    Nothing is placed but where it all is.
    """
    found = [placer.candidates(klass) for klass, _ in demand]
    sides = [pods for _, pods in demand]
    always = len(demand) <= ALWAYS_CLASSES and sum(sides) <= ALWAYS_PODS
    rows = np.unique(np.concatenate([each.rows[each.copies > 0] for each in found]))
    size = prod(side + 1 for side in sides)
    too_large = size > _WIDEST or (size * len(rows) > _MOST_CELLS and not always)
    if too_large or any(candidates.one_at_a_time for candidates in found):
        return GaveUp(0)
    box = Box(sides)
    takes = _takes(placer, demand, found, box, rows)
    cover = Cover(box, takes, None if always else STEPS)
    mark = placer.transaction.mark()
    try:
        if not cover.possible(0):
            return Impossible()
        placed = _assign(placer, demand, cover)
    except _OutOfStepsError:
        placed = None
    if placed is not None:
        return Found(placed)
    placer.transaction.undo(mark)
    return GaveUp(cover.steps)


class _OutOfStepsError(Exception):
    """The search has used up what it may."""


class Box:
    """All vectors up to the demand, numbered; a set of them is an integer's bits."""

    def __init__(self, sides: Sequence[int]) -> None:
        self.sides = tuple(sides)
        self.strides = [1] * len(sides)
        for at in range(len(sides) - 2, -1, -1):
            self.strides[at] = self.strides[at + 1] * (sides[at + 1] + 1)
        self.size = self.strides[0] * (sides[0] + 1)
        self.whole = self.size - 1
        """The number of the whole demand."""
        numbers = np.arange(self.size)
        self.vectors: Ints = np.stack(
            [
                numbers // stride % (side + 1)
                for stride, side in zip(self.strides, sides, strict=True)
            ],
            axis=1,
        ).astype(np.int64)
        """Shape ``(size, classes)``."""
        self._fits_beside: dict[int, int] = {}

    def fits_beside(self, number: int) -> int:
        """The vectors to which that of ``number`` can be added without leaving the box."""
        bits = self._fits_beside.get(number)
        if bits is None:
            sums = self.vectors + self.vectors[number]
            bits = self._fits_beside[number] = as_bits((sums <= self.sides).all(axis=1))
        return bits


class Cover:
    """Which demands the nodes can cover together, some pods being placed already."""

    def __init__(self, box: Box, takes: dict[int, int], steps: int | None) -> None:
        self.box = box
        self.steps = 0
        self._at_most = steps
        self._takes = takes
        """By row, the set of vectors that the node takes."""
        self._placed: dict[int, int] = {}
        """By row, the number of the vector that is on the node already."""
        self._kinds: dict[int, int] = {}
        """How many nodes take the same set."""
        for bits in takes.values():
            self._kinds[bits] = self._kinds.get(bits, 0) + 1

    def takes(self, row: int) -> int:
        """The set of vectors that a node still takes."""
        bits = self._takes.get(row, 1)
        placed = self._placed.get(row)
        if placed is None:
            return bits
        return (bits >> placed) & self.box.fits_beside(placed)

    def put(self, row: int, at: int) -> None:
        """A pod of the class ``at`` goes onto a node."""
        self._swap(row, self.box.strides[at])

    def take(self, row: int, at: int) -> None:
        """That pod is taken off again."""
        self._swap(row, -self.box.strides[at])

    def possible(self, covered: int) -> bool:
        """Whether the nodes can cover what is left of the demand beyond ``covered``."""
        box = self.box
        goal = 1 << (box.whole - covered)
        reached = 1
        for bits in sorted(self._kinds, key=lambda it: (-it.bit_count(), it)):
            vectors = [number for number in range(1, box.size) if bits >> number & 1]
            for _ in range(self._kinds[bits]):
                before = reached
                for number in vectors:
                    reached |= (before & box.fits_beside(number)) << number
                self._step(len(vectors))
                if reached & goal:
                    return True
                if reached == before:
                    break
        return bool(reached & goal)

    def _swap(self, row: int, by: int) -> None:
        self._count(self.takes(row), -1)
        self._placed[row] = self._placed.get(row, 0) + by
        self._count(self.takes(row), 1)

    def _count(self, bits: int, by: int) -> None:
        left = self._kinds.get(bits, 0) + by
        if left:
            self._kinds[bits] = left
        else:
            del self._kinds[bits]

    def _step(self, steps: int) -> None:
        self.steps += steps
        if self._at_most is not None and self.steps > self._at_most:
            raise _OutOfStepsError


def _takes(
    placer: Placer, demand: Demand, found: Sequence[Candidates], box: Box, rows: Rows
) -> dict[int, int]:
    """By row, the set of vectors that the node takes."""
    takes: dict[int, int] = {}
    at_once = max(1, _CELLS // box.size)
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        for row, bits in zip(
            some.tolist(), _feasible(placer, demand, found, box, some), strict=True
        ):
            takes[row] = as_bits(bits)
    return takes


def _feasible(
    placer: Placer, demand: Demand, found: Sequence[Candidates], box: Box, rows: Rows
) -> Mask:
    """Which vectors each node takes: shape ``(rows, box.size)``."""
    added: dict[int, Ints] = {}
    for at, (klass, _) in enumerate(demand):
        for column, amount in klass.columns:
            more = box.vectors[:, at] * amount
            added[column] = added[column] + more if column in added else more
    load = Load(placer.nodes, rows, added)
    one_more = []
    for (klass, _), candidates in zip(demand, found, strict=True):
        takes: Mask = np.repeat((candidates.position[rows] >= 0)[:, None], box.size, axis=1)
        for each in candidates.parts.row_filters:
            takes &= each.copies(klass, load) > 0
        one_more.append(takes)
    feasible: Mask = np.zeros((len(rows), box.size), np.bool_)
    feasible[:, 0] = True
    # A vector is reached by its last pod; those with one pod less have lower numbers.
    for number in range(1, box.size):
        for at, stride in enumerate(box.strides):
            if box.vectors[number, at]:
                before = number - stride
                feasible[:, number] |= feasible[:, before] & one_more[at][:, before]
    return feasible


def _assign(placer: Placer, demand: Demand, cover: Cover) -> list[list[int]] | None:
    """Give each pod in turn the best node that leaves room for the rest."""
    rows: list[list[int]] = []
    covered = 0
    for at, (klass, pods) in enumerate(demand):
        rows.append([])
        for _ in range(pods):
            covered += cover.box.strides[at]
            row = _best(placer, klass, cover, at, covered)
            if row is None:
                return None
            placer.transaction.put(klass, [row])
            rows[-1].append(row)
    return rows


def _best(placer: Placer, klass: PodClass, cover: Cover, at: int, covered: int) -> int | None:
    found = placer.candidates(klass)
    hopeless: set[int] = set()
    for position in np.argsort(-found.scores, kind="stable"):
        if found.scores[position] == NOWHERE:
            continue
        row = int(found.rows[position])
        kind = cover.takes(row)
        # Nodes that take the same are as good for the rest.
        if kind in hopeless:
            continue
        cover.put(row, at)
        if cover.possible(covered):
            return row
        cover.take(row, at)
        hopeless.add(kind)
    return None


def as_bits(mask: Mask) -> int:
    """A set of numbers as the bits of an integer."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")

"""Where pods of a class go: the arrays' answer to "one at a time, each on the best node".

For filters and scorers of scope ``static`` and ``row`` the answer for many pods is found
at once. ``S[node, k]`` is the score of the k-th copy on a node. As a node's next copy
competes only once the ones before it are placed, its copies are worth the running minimum
along k, and one sort by (-score, node name, k) is the very order in which pods placed one
at a time would have taken them. Only as much of ``S`` is worked out as is needed.

Scores of scope ``relative`` change when the last of the nodes that set the measure is full.
That order holds up to there; the rest is chosen by the new measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from services.scheduler.core.classes import ClassTable, PodClass
from services.scheduler.core.load import Load
from services.scheduler.core.nodes import Ints, NodeTable, Rows
from services.scheduler.core.scopes import UNLIMITED, Scope
from services.scheduler.core.transaction import Transaction
from services.scheduler.framework import Filter, Framework, RelativeScorer, Scorer

NOWHERE: Final = int(np.iinfo(np.int64).min)
"""The score of a node that takes no copy."""

_FIRST_DEPTH: Final = 2
_DEEPER: Final = 4
_MOSTLY: Final = 4
"""When more than one in so many nodes changed, all are looked at again."""


_KINDS: Final = {
    "filter": ("static", "row", "other"),
    "scorer": ("static", "relative", "row", "other"),
}


class Parts(NamedTuple):
    """The filters and scorers that have something to say of a class, by scope."""

    static_filters: list[Filter]
    row_filters: list[Filter]
    other_filters: list[Filter]
    static_scorers: list[Scorer]
    relative_scorers: list[RelativeScorer]
    row_scorers: list[Scorer]
    other_scorers: list[Scorer]

    @classmethod
    def of(cls, framework: Framework, klass: PodClass) -> Parts:
        """Those of ``framework``."""
        by_kind: dict[tuple[str, str], list[Any]] = {}
        for what, parts in (("filter", framework.filters), ("scorer", framework.scorers)):
            for part in parts:
                if part.concerns(klass):
                    by_kind.setdefault((what, _kind(what, part)), []).append(part)
        return cls(
            *(by_kind.get((what, kind), []) for what, kinds in _KINDS.items() for kind in kinds)
        )


class Relative:
    """The raw values that a relative scorer gives, and what they are measured against."""

    def __init__(self, scorer: RelativeScorer, raw: Ints) -> None:
        self.scorer = scorer
        self.raw = raw
        """By position."""
        self.most = -1
        """The largest of nodes that take a copy; -1: there are none."""

    def largest(self, copies: Ints) -> int:
        """What ``most`` is where nodes take so many copies."""
        raw = self.raw[copies > 0]
        return int(raw.max()) if len(raw) else -1

    def lasts(self, copies: Ints, positions: Rows) -> int:
        """For how many of the copies, placed in this order, ``most`` stays what it is."""
        if self.most <= 0:
            return len(positions)
        setting = self.raw == self.most
        left = int(copies[setting].sum())
        taken = np.cumsum(setting[positions])
        return int(np.searchsorted(taken, left)) + 1


class Candidates:
    """What is known of one class: where it may go, how often, and how well that is."""

    def __init__(self, klass: PodClass, nodes: NodeTable, parts: Parts, rows: Rows) -> None:
        self.klass = klass
        self.parts = parts
        self.one_at_a_time = bool(parts.other_filters or parts.other_scorers)
        """Something must be asked again after every pod of the class."""
        self.rows = rows
        """Rows that its static filters allow, by node name."""
        self.epoch = nodes.epoch
        self.seen = -1
        """The journal is taken into account up to here."""
        self.copies: Ints = np.zeros(len(rows), np.int64)
        """How many more copies each row takes."""
        self.total: int | None = None
        """Their sum, where it is known."""
        self.scores: Ints = np.zeros(len(rows), np.int64)
        """The score of the next copy, ``NOWHERE`` where there is none."""
        self.by_row: Ints = np.zeros(len(rows), np.int64)
        """The part of it that row scorers give."""
        self.static_scores: Ints = np.zeros(len(rows), np.int64)
        """The part that stays as the nodes fill."""
        self.fills = True
        """Whether its pods may fill a node before they go to the next, as far as is known."""
        self.relative: list[Relative] = []
        self.fixed_scores = self.static_scores
        """``static_scores``, and the part that stays until a measure changes."""
        self.position: Rows = np.full(len(nodes.nodes), -1, np.intp)
        """Where in ``rows`` a row is; -1 where it is not."""
        self.position[rows] = np.arange(len(rows))

    def measured(self, most: Sequence[int]) -> Ints:
        """What ``fixed_scores`` are where these are the largest raw values."""
        scores = self.static_scores.copy()
        for it, largest in zip(self.relative, most, strict=True):
            scores += it.scorer.measured(it.raw, max(largest, 0))
        return scores


class Front(NamedTuple):
    """Nodes that take a copy, the one whose first copy is worth most first, then by name."""

    positions: Rows
    scores: Ints
    copies: Ints

    def covering(self, wanted: int, depth: int) -> int:
        """How many of the first nodes take ``wanted`` copies, none more than ``depth``."""
        reach = np.cumsum(np.minimum(self.copies, depth))
        return min(int(np.searchsorted(reach, wanted)) + 1, len(self.positions))

    def rivals(self, nodes: int, least: int, last: int) -> int:
        """How many of the first nodes must be looked at, ``nodes`` of them being known.

        Those whose first copy is worth more than ``least``, or as much on a node that comes
        before the position ``last``.
        """
        rest = -self.scores[nodes:]
        if least == NOWHERE:
            return len(self.positions)
        better = int(np.searchsorted(rest, -least, side="left"))
        equal = int(np.searchsorted(rest, -least, side="right"))
        tied = self.positions[nodes + better : nodes + equal]
        return nodes + better + int(np.searchsorted(tied, last))


class Choice(NamedTuple):
    """A choice of copies, and whether it can still change."""

    positions: Rows
    nodes: int
    """How many nodes must be looked at."""
    too_shallow: bool
    """Deeper copies of these nodes must be looked at."""
    final: bool


class Placer:
    """Chooses nodes for pods, and puts them there within a transaction."""

    def __init__(
        self,
        nodes: NodeTable,
        classes: ClassTable,
        framework: Framework,
        transaction: Transaction,
    ) -> None:
        self.nodes = nodes
        self._classes = classes
        self.framework = framework
        self.transaction = transaction

    def copies(self, klass: PodClass) -> int:
        """How many more pods of a class all nodes together take, were no other placed."""
        found = self.candidates(klass)
        if found.total is None:
            found.total = int(found.copies.sum())
        return found.total

    def place(self, klass: PodClass, pods: int) -> list[int]:
        """Put ``pods`` pods of a class on nodes, as many as find room.

        Returns:
            The row of each, in the order in which they were placed.
        """
        found = self.candidates(klass)
        if found.one_at_a_time:
            return self._place_singly(found, pods)
        if not len(found.rows):
            return []
        rows: list[int] = []
        while True:
            chosen = self._next(found, pods - len(rows))
            self.transaction.put(klass, chosen)
            rows += chosen
            if not chosen or len(rows) == pods or not found.relative:
                return rows
            self.candidates(klass)

    def _next(self, found: Candidates, pods: int) -> list[int]:
        """The rows of the next pods, as many as the present measures choose."""
        if pods == 1:
            best = int(found.scores.argmax())
            return [] if found.scores[best] == NOWHERE else [int(found.rows[best])]
        positions = self._take(found, pods)
        lasts = [it.lasts(found.copies, positions) for it in found.relative]
        chosen: list[int] = found.rows[positions[: min(lasts, default=pods)]].tolist()
        return chosen

    def candidates(self, klass: PodClass) -> Candidates:
        """What is known of a class, brought up to date; scopes beyond ``row`` left out."""
        found: Candidates | None = klass.cache
        nodes = self.nodes
        if found is None or found.epoch != nodes.epoch:
            found = self._first_look(klass)
            self._classes.keep(klass, found)
        now = nodes.journal_start + len(nodes.journal)
        if found.seen < nodes.journal_start:
            self._look(found, None)
        elif found.seen < now:
            changed = nodes.journal[found.seen - nodes.journal_start :]
            if len(changed) * _MOSTLY > len(found.rows):
                self._look(found, None)
            else:
                positions = found.position[changed]
                self._look(found, positions[positions >= 0])
        found.seen = now
        return found

    def _first_look(self, klass: PodClass) -> Candidates:
        nodes = self.nodes
        rows = nodes.in_order
        if klass.missing or self.framework.unmet(klass):
            rows = rows[:0]
        parts = Parts.of(self.framework, klass)
        for each in parts.static_filters:
            rows = rows[each.copies(klass, Load(nodes, rows)) > 0]
        found = Candidates(klass, nodes, parts, rows)
        for scorer in parts.static_scorers:
            found.static_scores += scorer.score(klass, Load(nodes, rows))
        for relative in parts.relative_scorers:
            raw = relative.score(klass, Load(nodes, rows))
            # What all nodes are worth alike moves nothing.
            if len(raw) and int(raw.min()) != int(raw.max()):
                found.relative.append(Relative(relative, raw))
        return found

    def _look(self, found: Candidates, at: Rows | None) -> None:
        """Work out copies and scores anew at some positions, or at all."""
        rows = found.rows if at is None else found.rows[at]
        klass, load = found.klass, Load(self.nodes, rows)
        copies: Ints = np.full(len(rows), UNLIMITED, np.int64)
        for each in found.parts.row_filters:
            copies = np.minimum(copies, each.copies(klass, load))
        by_row: Ints = np.zeros(len(rows), np.int64)
        for scorer in found.parts.row_scorers:
            by_row += scorer.score(klass, load)
        found.total = None
        if at is None:
            found.copies, found.by_row = copies, by_row
        else:
            found.copies[at], found.by_row[at] = copies, by_row
        if self._measure(found) or at is None:
            found.scores = found.fixed_scores + found.by_row
            found.scores[found.copies <= 0] = NOWHERE
        else:
            found.scores[at] = np.where(copies > 0, found.fixed_scores[at] + by_row, NOWHERE)

    def _measure(self, found: Candidates) -> bool:
        """Bring ``fixed_scores`` up to date; whether they changed."""
        most = [it.largest(found.copies) for it in found.relative]
        if most == [it.most for it in found.relative]:
            return False
        for it, now in zip(found.relative, most, strict=True):
            it.most = now
        found.fixed_scores = found.measured(most)
        return True

    def _take(self, found: Candidates, pods: int) -> Rows:
        """Positions in ``found.rows`` that pods placed one at a time would take, in order."""
        open_to_it = np.flatnonzero(found.copies > 0)
        wanted = min(pods, int(np.minimum(found.copies[open_to_it], pods).sum()))
        if wanted == 0:
            return open_to_it[:0]
        # A node's first copy is its best, so no others than so many best nodes are touched.
        open_to_it = open_to_it[_best_of(found.scores[open_to_it], wanted)]
        # Best first copy first; a stable sort leaves equal ones in order of name.
        order = np.argsort(-found.scores[open_to_it], kind="stable")
        first = open_to_it[order]
        copies = np.minimum(found.copies[first], pods)
        front = Front(first, found.scores[first], copies)
        deepest = int(copies.max())
        if found.fills:
            # Where scores rise as a node fills, few nodes to their full depth settle it.
            choice = self._choose(
                found, front, front.covering(wanted, deepest), deepest, wanted
            )
            if choice.final:
                return choice.positions
        # Else the best first copies mostly do: as many nodes as pods, each not very deep.
        nodes, depth = min(wanted, len(front.positions)), min(_FIRST_DEPTH, deepest)
        choice = self._choose(found, front, nodes, depth, wanted)
        found.fills = choice.too_shallow
        while not choice.final:
            if choice.too_shallow:
                depth = min(depth * _DEEPER, deepest)
            choice = self._choose(found, front, choice.nodes, depth, wanted)
        return choice.positions

    def _choose(
        self,
        found: Candidates,
        front: Front,
        nodes: int,
        depth: int,
        wanted: int,
    ) -> Choice:
        """The best copies among the first ``depth`` of the first ``nodes`` in ``front``."""
        by_name = np.argsort(front.positions[:nodes], kind="stable")
        positions, copies = front.positions[by_name], front.copies[by_name]
        worth = self._worth(found, positions, copies, depth)
        flat = worth.ravel()
        least = _nth_largest(flat, wanted)
        in_play = np.flatnonzero((flat >= least) & (flat != NOWHERE))
        best = in_play[np.argsort(-flat[in_play], kind="stable")[:wanted]]
        chosen = positions[best // depth]
        if len(chosen) < wanted:
            last = len(found.rows)
            least = NOWHERE
        else:
            last = int(chosen[-1])
        # A copy left out must be worth less than the last one chosen, or come after it.
        deeper = copies > depth
        ahead = (worth[:, -1] > least) | ((worth[:, -1] == least) & (positions < last))
        rivals = front.rivals(nodes, least, last)
        too_shallow = bool((deeper & ahead).any())
        return Choice(chosen, rivals, too_shallow, rivals == nodes and not too_shallow)

    def _worth(self, found: Candidates, at: Rows, copies: Ints, depth: int) -> Ints:
        """The running minimum of ``S`` for the first ``depth`` copies at some positions."""
        nth = np.arange(depth, dtype=np.int64)
        added = {column: nth * amount for column, amount in found.klass.columns}
        load = Load(self.nodes, found.rows[at], added)
        scores = np.repeat(found.fixed_scores[at][:, None], depth, axis=1)
        for scorer in found.parts.row_scorers:
            scores += scorer.score(found.klass, load)
        worth: Ints = np.minimum.accumulate(scores, axis=1)
        worth[nth >= copies[:, None]] = NOWHERE
        return worth

    def _place_singly(self, found: Candidates, pods: int) -> list[int]:
        placed: list[int] = []
        klass = found.klass
        for _ in range(pods):
            self.candidates(klass)
            load = Load(self.nodes, found.rows)
            copies = found.copies
            for each in found.parts.other_filters:
                copies = np.minimum(copies, each.copies(klass, load))
            scores = found.by_row + found.measured(
                [it.largest(copies) for it in found.relative]
            )
            for scorer in found.parts.other_scorers:
                scores += scorer.score(klass, load)
            scores[copies <= 0] = NOWHERE
            if not len(scores) or scores.max() == NOWHERE:
                break
            placed.append(int(found.rows[scores.argmax()]))
            self.transaction.put(klass, placed[-1:])
        return placed


def _kind(what: str, part: Filter | Scorer) -> str:
    scope: Scope | None = getattr(part, "scope", None)
    return scope.kind if scope is not None and scope.kind in _KINDS[what] else "other"


def _best_of(scores: Ints, wanted: int) -> Rows:
    """Where the ``wanted`` best scores are, in order; of equal ones the first."""
    if wanted >= len(scores):
        return np.arange(len(scores))
    least = _nth_largest(scores, wanted)
    better = scores > least
    missing = wanted - int(np.count_nonzero(better))
    better[np.flatnonzero(scores == least)[:missing]] = True
    return np.flatnonzero(better)


def _nth_largest(worth: Ints, nth: int) -> int:
    if worth.size < nth:
        return NOWHERE
    return int(np.partition(worth, worth.size - nth)[worth.size - nth])

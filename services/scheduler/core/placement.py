"""Where pods of a class go: the arrays' answer to "one at a time, each on the best node".

For filters and scorers of scope ``static`` and ``row`` the answer for many pods is found
at once. ``S[node, k]`` is the score of the k-th copy on a node. As a node's next copy
competes only once the ones before it are placed, its copies are worth the running minimum
along k, and one sort by (-score, node name, k) is the very order in which pods placed one
at a time would have taken them. Only as much of ``S`` is worked out as is needed.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from services.scheduler.core.classes import ClassTable, PodClass
from services.scheduler.core.load import Load
from services.scheduler.core.nodes import Ints, NodeTable, Rows
from services.scheduler.core.scopes import UNLIMITED, Scope
from services.scheduler.core.transaction import Transaction
from services.scheduler.framework import Filter, Framework, Scorer

NOWHERE: Final = int(np.iinfo(np.int64).min)
"""The score of a node that takes no copy."""

_FIRST_DEPTH: Final = 4
_DEEPER: Final = 4
_MOSTLY: Final = 4
"""When more than one in so many nodes changed, all are looked at again."""


class Parts(NamedTuple):
    """The filters and scorers that have something to say of a class, by scope."""

    static_filters: list[Filter]
    row_filters: list[Filter]
    other_filters: list[Filter]
    static_scorers: list[Scorer]
    row_scorers: list[Scorer]
    other_scorers: list[Scorer]

    @classmethod
    def of(cls, framework: Framework, klass: PodClass) -> Parts:
        """Those of ``framework``."""
        by_kind: dict[tuple[str, str], list[Any]] = {}
        for what, parts in (("filter", framework.filters), ("scorer", framework.scorers)):
            for part in parts:
                if part.concerns(klass):
                    by_kind.setdefault((what, _kind(part)), []).append(part)
        return cls(
            *(
                by_kind.get((what, kind), [])
                for what in ("filter", "scorer")
                for kind in ("static", "row", "other")
            )
        )


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
        self.static_scores: Ints = np.zeros(len(rows), np.int64)
        self.position: Rows = np.full(len(nodes.nodes), -1, np.intp)
        """Where in ``rows`` a row is; -1 where it is not."""
        self.position[rows] = np.arange(len(rows))


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
        if pods == 1:
            best = int(found.scores.argmax())
            rows = [] if found.scores[best] == NOWHERE else [int(found.rows[best])]
        else:
            rows = found.rows[self._take(found, pods)].tolist()
        self.transaction.put(klass, rows)
        return rows

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
        return found

    def _look(self, found: Candidates, at: Rows | None) -> None:
        """Work out copies and scores anew at some positions, or at all."""
        rows = found.rows if at is None else found.rows[at]
        klass, load = found.klass, Load(self.nodes, rows)
        copies: Ints = np.full(len(rows), UNLIMITED, np.int64)
        for each in found.parts.row_filters:
            copies = np.minimum(copies, each.copies(klass, load))
        scores = (found.static_scores if at is None else found.static_scores[at]).copy()
        for scorer in found.parts.row_scorers:
            scores += scorer.score(klass, load)
        scores[copies <= 0] = NOWHERE
        found.total = None
        if at is None:
            found.copies, found.scores = copies, scores
        else:
            found.copies[at], found.scores[at] = copies, scores

    def _take(self, found: Candidates, pods: int) -> Rows:
        """Positions in ``found.rows`` that pods placed one at a time would take, in order."""
        open_to_it = np.flatnonzero(found.copies > 0)
        copies = np.minimum(found.copies[open_to_it], pods)
        wanted = min(pods, int(copies.sum()))
        if wanted == 0:
            return open_to_it[:0]
        # Best first copy first; a stable sort leaves equal ones in order of name.
        order = np.argsort(-found.scores[open_to_it], kind="stable")
        front = Front(open_to_it[order], found.scores[open_to_it[order]], copies[order])
        # Where scores rise as a node fills, few nodes to their full depth settle it at once.
        depth = deepest = int(copies.max())
        nodes = front.covering(wanted, depth)
        choice = self._choose(found, front, nodes, depth, wanted)
        if not choice.final:
            depth = min(_FIRST_DEPTH, deepest)
            nodes = front.covering(wanted, depth)
        while not choice.final:
            choice = self._choose(found, front, nodes, depth, wanted)
            nodes = choice.nodes
            if choice.too_shallow:
                depth = min(depth * _DEEPER, deepest)
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
        scores = np.repeat(found.static_scores[at][:, None], depth, axis=1)
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
            copies, scores = found.copies, found.scores.copy()
            for each in found.parts.other_filters:
                copies = np.minimum(copies, each.copies(klass, load))
            for scorer in found.parts.other_scorers:
                scores += scorer.score(klass, load)
            scores[copies <= 0] = NOWHERE
            if not len(scores) or scores.max() == NOWHERE:
                break
            placed.append(int(found.rows[scores.argmax()]))
            self.transaction.put(klass, placed[-1:])
        return placed


def _kind(part: Filter | Scorer) -> str:
    scope: Scope | None = getattr(part, "scope", None)
    return scope.kind if scope is not None and scope.kind in {"static", "row"} else "other"


def _nth_largest(worth: Ints, nth: int) -> int:
    if worth.size < nth:
        return NOWHERE
    return int(np.partition(worth, worth.size - nth)[worth.size - nth])

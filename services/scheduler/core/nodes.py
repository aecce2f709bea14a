"""The nodes as arrays: what each has, what is used of it, what is promised.

Shapes are ``(nodes, resources)``, ``int64``, column by column in memory. A row belongs to
a node as long as the node is known; rows are never moved.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hekla.domain.resources import CPU, MEMORY, PODS
from services.scheduler.core.objects import Node, NodeTerm, Taint

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

LARGEST: Final = 1 << 50
"""No node counts as having more of a resource: sums and fixed-point scores stay exact."""

UNFITTING: Final = LARGEST + 1
"""What a request beyond ``LARGEST`` counts as: more than any node has."""

CPU_COLUMN: Final = 0
MEMORY_COLUMN: Final = 1
PODS_COLUMN: Final = 2
_FIRST_ROWS: Final = 16


class NodeTable:
    """Every known node, one row each."""

    def __init__(self) -> None:
        self.columns: dict[str, int] = {
            CPU: CPU_COLUMN,
            MEMORY: MEMORY_COLUMN,
            PODS: PODS_COLUMN,
        }
        """Which column a resource has. Grows with what nodes offer, never shrinks."""
        self.rows: dict[str, int] = {}
        """Which row a node has."""
        self.nodes: list[Node | None] = []
        """The node of each row; None where the row is free."""
        self.allocatable = _zeros(_FIRST_ROWS, 3)
        self.used = _zeros(_FIRST_ROWS, 3)
        """Taken by pods that are bound, assumed, running or ending."""
        self.releasing = _zeros(_FIRST_ROWS, 3)
        """The part of ``used`` whose pods are ending."""
        self.pipelined = _zeros(_FIRST_ROWS, 3)
        """Promised to pods that are not placed."""
        self.total: list[int] = [0, 0, 0]
        """Sum of ``allocatable`` over all nodes, by column."""
        self.epoch = 0
        """Moves when the set of nodes changes, or what is said of one besides amounts."""
        self.journal: list[int] = []
        """Rows whose amounts changed, in order; see ``journal_start``."""
        self.journal_start = 0
        """How many entries were cut from the front of ``journal``."""
        self._free: list[int] = []
        self._order: Rows | None = None
        self._masks: dict[Hashable, Mask] = {}
        self._taint_rows: dict[tuple[Taint, ...], list[int]] | None = None

    def upsert(self, node: Node) -> int | None:
        """Take what a node says of itself.

        Returns:
            Its row; None where nothing changed.
        """
        row = self.rows.get(node.name)
        if row is None:
            row = self._free.pop() if self._free else self._grow_rows()
            self.rows[node.name] = row
            self.nodes[row] = node
            self._facts_changed(order=True)
        else:
            before = self.nodes[row]
            if before == node:
                return None
            self.nodes[row] = node
            if before is None or _facts(before) != _facts(node):
                self._facts_changed()
        self._set_allocatable(row, node.allocatable)
        self.touch(row)
        return row

    def remove(self, name: str) -> None:
        """Forget a node; its row is free, its amounts are zero."""
        row = self.rows.pop(name)
        self._set_allocatable(row, {})
        self.nodes[row] = None
        for array in (self.used, self.releasing, self.pipelined):
            array[row] = 0
        self._free.append(row)
        self._facts_changed(order=True)

    def name(self, row: int) -> str:
        """The name of the node that has ``row``."""
        node = self.nodes[row]
        assert node is not None, f"row {row} is free"
        return node.name

    @property
    def in_order(self) -> Rows:
        """Rows of all nodes, by name: the order in which ties break."""
        if self._order is None:
            self._order = np.array([self.rows[name] for name in sorted(self.rows)], np.intp)
        return self._order

    def touch(self, row: int) -> None:
        """Note that amounts of ``row`` changed."""
        self.journal.append(row)

    def touch_all(self, rows: Iterable[int]) -> None:
        """Note that amounts of ``rows`` changed."""
        self.journal.extend(rows)

    def trim_journal(self) -> None:
        """Cut the journal when it is longer than looking at every node would be."""
        if len(self.journal) > 2 * len(self.nodes) + 64:
            self.journal_start += len(self.journal)
            self.journal.clear()

    def labelled(self, key: str, value: str) -> Mask:
        """Which rows' nodes carry the label: shape ``(rows,)``."""
        return self._mask((key, value), lambda node: node.labels.get(key) == value)

    def matching(self, term: NodeTerm) -> Mask:
        """Which rows' nodes a term of an affinity matches: shape ``(rows,)``."""
        return self._mask(term, term.matches)

    def unschedulable(self) -> Mask:
        """Which rows' nodes are cordoned: shape ``(rows,)``."""
        return self._mask(("unschedulable",), lambda node: node.unschedulable)

    def unready(self) -> Mask:
        """Which rows' nodes are not ready: shape ``(rows,)``."""
        return self._mask(("unready",), lambda node: not node.ready)

    def tainted(self) -> Mapping[tuple[Taint, ...], list[int]]:
        """Rows by the set of taints their nodes have, where they have any."""
        if self._taint_rows is None:
            self._taint_rows = {}
            for name, row in self.rows.items():
                node = self.nodes[row]
                assert node is not None, f"{name} has a free row"
                if node.taints:
                    self._taint_rows.setdefault(node.taints, []).append(row)
        return self._taint_rows

    def _mask(self, key: Hashable, holds: Callable[[Node], bool]) -> Mask:
        mask = self._masks.get(key)
        if mask is None:
            answers = [node is not None and holds(node) for node in self.nodes]
            mask = self._masks[key] = np.array(answers, np.bool_)
        return mask

    def _facts_changed(self, *, order: bool = False) -> None:
        self.epoch += 1
        self._masks.clear()
        self._taint_rows = None
        if order:
            self._order = None

    def _set_allocatable(self, row: int, amounts: Mapping[str, int]) -> None:
        for name in amounts:
            if name not in self.columns:
                self._add_column(name)
        for name, column in self.columns.items():
            amount = max(0, min(amounts.get(name, 0), LARGEST))
            self.total[column] += amount - int(self.allocatable[row, column])
            self.allocatable[row, column] = amount

    def _add_column(self, name: str) -> None:
        self.columns[name] = len(self.columns)
        self.total.append(0)
        column = np.zeros((len(self.allocatable), 1), np.int64)
        self.allocatable = np.asfortranarray(np.hstack([self.allocatable, column]))
        self.used = np.asfortranarray(np.hstack([self.used, column]))
        self.releasing = np.asfortranarray(np.hstack([self.releasing, column]))
        self.pipelined = np.asfortranarray(np.hstack([self.pipelined, column]))

    def _grow_rows(self) -> int:
        row = len(self.nodes)
        self.nodes.append(None)
        if row == len(self.allocatable):
            self.allocatable = _doubled(self.allocatable)
            self.used = _doubled(self.used)
            self.releasing = _doubled(self.releasing)
            self.pipelined = _doubled(self.pipelined)
        return row


def _facts(node: Node) -> tuple[object, ...]:
    return (node.labels, node.taints, node.unschedulable, node.ready)


def _zeros(rows: int, columns: int) -> Ints:
    return np.zeros((rows, columns), np.int64, order="F")


def _doubled(array: Ints) -> Ints:
    rows, columns = array.shape
    bigger = _zeros(2 * rows, columns)
    bigger[:rows] = array
    return bigger

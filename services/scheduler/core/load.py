"""What plugins see of nodes: some rows, and what is on them in a case that is weighed."""

from __future__ import annotations

from collections.abc import Mapping

from services.scheduler.core.nodes import PODS_COLUMN, Ints, NodeTable, Rows


class Load:
    """Some nodes' amounts, as they are or with pods added that are only thought of.

    Every answer has ``shape``: ``(rows,)`` as they are, ``(rows, cases)`` where several
    cases are weighed at once. A plugin that computes with ``+ - * // << >>``, comparisons
    and numpy's element-wise functions need not care which.
    """

    __slots__ = ("_added", "nodes", "rows")

    def __init__(
        self, nodes: NodeTable, rows: Rows, added: Mapping[int, Ints] | None = None
    ) -> None:
        self.nodes = nodes
        self.rows = rows
        """Which rows: shape ``(rows,)``."""
        self._added = added
        """By column, what is added in each case: shape ``(cases,)``."""

    def allocatable(self, column: int) -> Ints:
        """What each node has of a resource: shape ``(rows,)`` or ``(rows, 1)``."""
        amounts: Ints = self.nodes.allocatable[self.rows, column]
        return amounts if self._added is None else amounts[:, None]

    def used(self, column: int) -> Ints:
        """What is taken of a resource."""
        return self._with_added(self.nodes.used[self.rows, column], column)

    def room(self, column: int) -> Ints:
        """What is left of a resource, neither taken nor promised; may be below zero."""
        nodes, rows = self.nodes, self.rows
        taken: Ints = nodes.used[rows, column] + nodes.pipelined[rows, column]
        left: Ints = nodes.allocatable[rows, column] - taken
        if self._added is None:
            return left
        left = left[:, None]
        if column in self._added:
            left = left - self._added[column]
        return left

    def with_more(self, amounts: Ints, a_pod: int) -> Ints:
        """Amounts of the rows, in each case with ``a_pod`` more for every pod added."""
        if self._added is None:
            return amounts
        pods: Ints | int = self._added.get(PODS_COLUMN, 0)
        return amounts[:, None] + a_pod * pods

    def _with_added(self, amounts: Ints, column: int) -> Ints:
        if self._added is None:
            return amounts
        amounts = amounts[:, None]
        if column in self._added:
            amounts = amounts + self._added[column]
        return amounts

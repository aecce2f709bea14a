"""Who is on which node: the one place that turns pods into amounts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from services.scheduler.core.classes import PodClass
from services.scheduler.core.groups import Hold, PodState
from services.scheduler.core.nodes import NodeTable
from services.scheduler.core.objects import Node
from services.scheduler.core.status import Status


class Tracker(Protocol):
    """State of a plugin's own about each node that is no amount: cards, ports, volumes.

    It moves only through ``apply`` and ``undo``, from events and from sessions alike.
    ``undo`` takes back what ``apply`` did, in any order of pods.
    """

    def concerns(self, klass: PodClass) -> bool:
        """Whether pods of the class make any difference to it."""
        ...

    def apply(self, klass: PodClass, row: int, copies: int) -> None:
        """Pods of a class came onto a node."""
        ...

    def undo(self, klass: PodClass, row: int, copies: int) -> None:
        """Pods of a class left a node."""
        ...

    def clear(self) -> None:
        """No node has any pod."""
        ...


class Occupancy:
    """The nodes, the pods on them, and the room that is kept."""

    def __init__(self) -> None:
        self.nodes = NodeTable()
        self.room = 0
        """Moves whenever room may have grown anywhere."""
        self.trackers: Sequence[Tracker] = ()
        self._placed: dict[str, dict[str, PodState]] = {}
        self._holds: dict[str, Hold] = {}

    def on_node(self, name: str) -> Iterable[PodState]:
        """The pods that take room on a node, known or not."""
        return self._placed.get(name, {}).values()

    def track(self, trackers: Sequence[Tracker]) -> None:
        """Keep these trackers from now on, beginning with all that is placed."""
        self.trackers = trackers
        for tracker in trackers:
            tracker.clear()
        for states in self._placed.values():
            for state in states.values():
                if state.row >= 0:
                    self.track_copies(state.klass, state.row, 1)

    def put(self, state: PodState) -> None:
        """A pod takes room on the node that it names."""
        self._placed.setdefault(state.node, {})[state.pod.uid] = state
        state.row = self.nodes.rows.get(state.node, -1)
        self._count(state, 1)

    def settle(self, states: Iterable[PodState]) -> None:
        """As ``put``, where a session has already counted the pods."""
        for state in states:
            placed = self._placed.get(state.node)
            if placed is None:
                placed = self._placed[state.node] = {}
            placed[state.pod.uid] = state

    def take(self, state: PodState) -> None:
        """A pod no longer takes room on its node."""
        placed = self._placed[state.node]
        del placed[state.pod.uid]
        if not placed:
            del self._placed[state.node]
        self._count(state, -1)
        state.row = -1
        self.room += 1

    def set_releasing(self, state: PodState, *, releasing: bool) -> None:
        """A pod that takes room begins, or does not, to give it back."""
        if state.row >= 0:
            by = 1 if releasing else -1
            for column, amount in state.klass.columns:
                self.nodes.releasing[state.row, column] += by * amount

    def hold(self, pod_uid: str, hold: Hold) -> None:
        """Keep room for a pod that is not placed."""
        self._holds[pod_uid] = hold
        self.count_hold(hold, 1)

    def release(self, pod_uid: str) -> None:
        """Stop keeping room for a pod."""
        self.count_hold(self._holds.pop(pod_uid), -1)
        self.room += 1

    def upsert_node(self, node: Node) -> bool:
        """Take what a node says of itself.

        Returns:
            Whether it brought resources that no node had before.
        """
        new = node.name not in self.nodes.rows
        width = len(self.nodes.columns)
        row = self.nodes.upsert(node)
        if row is None:
            return False
        self.room += 1
        if new:
            for state in self._placed.get(node.name, {}).values():
                state.row = row
                self._count(state, 1)
            for hold in self._holds.values():
                if hold.node == node.name:
                    self.count_hold(hold, 1)
        return len(self.nodes.columns) > width

    def remove_node(self, name: str) -> None:
        """A node is gone; its pods stay where they say they are until they go too."""
        row = self.nodes.rows.get(name)
        if row is None:
            return
        for state in self._placed.get(name, {}).values():
            self.track_copies(state.klass, row, -1)
            state.row = -1
        self.nodes.remove(name)

    def measure(self, classes: Iterable[PodClass]) -> None:
        """Bring into columns what classes ask for and no node had until now."""
        grown: dict[PodClass, set[int]] = {}
        for klass in classes:
            if klass.missing:
                before = {column for column, _ in klass.columns}
                klass.measure(self.nodes.columns)
                grown[klass] = {column for column, _ in klass.columns} - before
        for states in self._placed.values():
            for state in states.values():
                for column in grown.get(state.klass, ()):
                    self._count_column(state, column)
        for hold in self._holds.values():
            row = self.nodes.rows.get(hold.node, -1)
            for column, amount in hold.klass.columns:
                if row >= 0 and column in grown.get(hold.klass, ()):
                    self.nodes.pipelined[row, column] += amount

    def _count_column(self, state: PodState, column: int) -> None:
        if state.row >= 0:
            amount = dict(state.klass.columns)[column]
            self.nodes.used[state.row, column] += amount
            if state.status is Status.RELEASING:
                self.nodes.releasing[state.row, column] += amount

    def _count(self, state: PodState, by: int) -> None:
        row = state.row
        if row < 0:
            return
        nodes = self.nodes
        for column, amount in state.klass.columns:
            nodes.used[row, column] += by * amount
            if state.status is Status.RELEASING:
                nodes.releasing[row, column] += by * amount
        nodes.touch(row)
        self.track_copies(state.klass, row, by)

    def count_hold(self, hold: Hold, by: int) -> None:
        """Count room as kept (1) or free again (-1)."""
        row = self.nodes.rows.get(hold.node, -1)
        if row >= 0:
            for column, amount in hold.klass.columns:
                self.nodes.pipelined[row, column] += by * amount
            self.nodes.touch(row)

    def track_copies(self, klass: PodClass, row: int, by: int) -> None:
        """Tell the trackers of pods that come (above zero) or leave (below)."""
        for tracker in self.trackers_of(klass):
            if by > 0:
                tracker.apply(klass, row, by)
            else:
                tracker.undo(klass, row, -by)

    def trackers_of(self, klass: PodClass) -> list[Tracker]:
        """The trackers to which pods of the class make a difference."""
        return [tracker for tracker in self.trackers if tracker.concerns(klass)]

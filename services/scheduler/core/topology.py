"""How many nodes each hypernode holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from hekla.domain.selector import Selector

NODE: Final = "Node"
HYPER_NODE: Final = "HyperNode"

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Member:
    """Some members of a hypernode, chosen in one way; in none, none."""

    type: str
    name: str = ""
    pattern: str = ""
    """Somewhere in the name."""
    labels: Selector | None = None
    """Of nodes only; a selector that asks for nothing chooses nothing."""

    def chooses(self, candidates: Mapping[str, Labels]) -> Iterator[str]:
        """The names of those of the ``candidates`` that are meant."""
        if self.name:
            if self.name in candidates:
                yield self.name
        elif self.pattern:
            pattern = _compiled(self.pattern)
            if pattern is not None:
                yield from filter(pattern.search, candidates)
        elif self.labels is not None and self.labels.requirements and self.type == NODE:
            for name, labels in candidates.items():
                if self.labels.matches(labels):
                    yield name


@dataclass(frozen=True, slots=True)
class HyperNode:
    """A part of the network."""

    name: str
    members: tuple[Member, ...]
    told: int | None = None
    """The ``status.nodeCount`` that it has."""


def node_counts(
    hyper_nodes: Iterable[HyperNode], nodes: Mapping[str, Labels]
) -> dict[str, int]:
    """The number of nodes in each hypernode and all below it, each node once.

    Only nodes that exist count. Hypernodes that contain each other contain the same nodes.
    """
    by_name = {one.name: one for one in hyper_nodes}
    names: Mapping[str, Labels] = {name: {} for name in by_name}
    own: dict[str, set[str]] = {}
    below: dict[str, set[str]] = {}
    for name, one in by_name.items():
        own[name] = set(_chosen(one, NODE, nodes))
        below[name] = set(_chosen(one, HYPER_NODE, names))
    return {name: len(_all(name, own, below)) for name in by_name}


def _chosen(one: HyperNode, type_: str, candidates: Mapping[str, Labels]) -> Iterator[str]:
    for member in one.members:
        if member.type == type_:
            yield from member.chooses(candidates)


def _all(top: str, own: Mapping[str, set[str]], below: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    seen, ahead = {top}, [top]
    while ahead:
        name = ahead.pop()
        found |= own[name]
        ahead += below[name] - seen
        seen |= below[name]
    return found


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """The expression; None if it is none."""
    try:
        # Python's word for the end is another.
        return re.compile(pattern.replace("\\z", "\\Z"))
    except (re.error, OverflowError, RecursionError):
        return None

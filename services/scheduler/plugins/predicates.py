"""Which nodes a pod may go to at all, by what node and pod say of themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from services.scheduler.arguments import Arguments
from services.scheduler.core.classes import PodClass
from services.scheduler.core.load import Load
from services.scheduler.core.nodes import Ints, Mask, NodeTable
from services.scheduler.core.objects import Taint, Toleration
from services.scheduler.core.scopes import STATIC, UNLIMITED
from services.scheduler.framework import Filter

_KEEPING_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_CORDON: Final = Taint("node.kubernetes.io/unschedulable")


class Predicates:
    """Cordons, readiness, node selectors, required node affinity and taints."""

    name = "predicates"
    reads = ("node_selector", "node_terms", "tolerations")

    def __init__(self, arguments: Arguments) -> None:
        self._affinity = arguments.flag("predicate.NodeAffinityEnable", default=True)
        self._taints = arguments.flag("predicate.TaintTolerationEnable", default=True)
        for name in (
            "NodePorts",
            "PodAffinity",
            "NodeVolumeLimits",
            "VolumeZone",
            "PodTopologySpread",
            "VolumeBinding",
            "DynamicResourceAllocation",
        ):
            arguments.flag(f"predicate.{name}Enable", default=True)
        arguments.flag("predicate.CacheEnable", default=False)

    def filters(self) -> list[Filter]:
        """Those that are switched on, in the order in which they are asked."""
        filters: list[Filter] = [
            Static("node(s) were not ready", _not_ready),
            Static("node(s) were unschedulable", _cordoned),
        ]
        if self._affinity:
            text = "node(s) didn't match Pod's node affinity/selector"
            filters.append(Static(text, _unselected))
        if self._taints:
            filters.append(Static("node(s) had untolerated taint(s)", _untolerated))
        return filters


class Static:
    """A filter by what node and pod say of themselves."""

    scope = STATIC

    def __init__(
        self, reason: str, against: Callable[[PodClass, NodeTable], Mask | None]
    ) -> None:
        self._reason = reason
        self._against = against

    def concerns(self, klass: PodClass) -> bool:
        """Any class may be concerned."""
        del klass
        return True

    def copies(self, klass: PodClass, load: Load) -> Ints:
        """All or none."""
        against = self._against(klass, load.nodes)
        if against is None:
            return np.full(len(load.rows), UNLIMITED, np.int64)
        return np.where(against[load.rows], 0, UNLIMITED).astype(np.int64)

    def reasons(self, klass: PodClass, load: Load) -> Iterator[tuple[str, Mask]]:
        """The one reason."""
        against = self._against(klass, load.nodes)
        if against is not None:
            yield self._reason, against[load.rows]


def tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    """Whether one of ``tolerations`` matches the taint."""
    return any(_matches(it, taint) for it in tolerations)


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in {"", taint.effect}:
        return False
    match toleration.operator:
        case "Exists":
            return toleration.key in {"", taint.key}
        case "" | "Equal":
            return (toleration.key, toleration.value) == (taint.key, taint.value)
        case "Lt" | "Gt":
            bound, value = _whole(toleration.value), _whole(taint.value)
            if toleration.key != taint.key or bound is None or value is None:
                return False
            return value < bound if toleration.operator == "Lt" else value > bound
    return False


def _whole(text: str) -> int | None:
    """A whole number in the one way Kubernetes lets it be written, of 64 bits."""
    if _WHOLE.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def _not_ready(klass: PodClass, nodes: NodeTable) -> Mask:
    del klass
    return nodes.unready()


def _cordoned(klass: PodClass, nodes: NodeTable) -> Mask | None:
    if tolerated(_CORDON, klass.spec.tolerations):
        return None
    return nodes.unschedulable()


def _unselected(klass: PodClass, nodes: NodeTable) -> Mask | None:
    against: Mask | None = None
    for key, value in klass.spec.node_selector:
        missing = ~nodes.labelled(key, value)
        against = missing if against is None else against | missing
    if klass.spec.node_terms:
        elsewhere = ~np.logical_or.reduce([nodes.matching(it) for it in klass.spec.node_terms])
        against = elsewhere if against is None else against | elsewhere
    return against


def _untolerated(klass: PodClass, nodes: NodeTable) -> Mask | None:
    tainted = nodes.tainted()
    if not tainted:
        return None
    against = np.zeros(len(nodes.nodes), np.bool_)
    for taints, rows in tainted.items():
        against[rows] = any(
            taint.effect in _KEEPING_AWAY and not tolerated(taint, klass.spec.tolerations)
            for taint in taints
        )
    return against

"""Every plugin by its name in ``volcano-scheduler.conf``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from services.scheduler.arguments import Arguments
from services.scheduler.framework import Plugin
from services.scheduler.plugins.binpack import Binpack
from services.scheduler.plugins.gang import Gang
from services.scheduler.plugins.nodeorder import NodeOrder
from services.scheduler.plugins.predicates import Predicates
from services.scheduler.plugins.priority import Priority

PLUGINS: Final[Mapping[str, Callable[[Arguments], Plugin]]] = {
    Binpack.name: Binpack,
    Gang.name: Gang,
    NodeOrder.name: NodeOrder,
    Predicates.name: Predicates,
    Priority.name: Priority,
}

NOT_BUILT: Final = frozenset(
    {
        "capacity",
        "cdp",
        "conformance",
        "deviceshare",
        "drf",
        "extender",
        "network-topology-aware",
        "nodegroup",
        "numa-aware",
        "overcommit",
        "pdb",
        "proportion",
        "rescheduling",
        "resource-strategy-fit",
        "resourcequota",
        "sla",
        "task-topology",
        "tdm",
        "usage",
    }
)
"""Volcano's other plugins: accepted and left out, with a warning."""

"""Every action by its name in ``volcano-scheduler.conf``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from services.scheduler.actions.allocate import Allocate
from services.scheduler.actions.backfill import Backfill
from services.scheduler.actions.enqueue import Enqueue
from services.scheduler.framework import Action

ACTIONS: Final[Mapping[str, Callable[[], Action]]] = {
    Enqueue.name: Enqueue,
    Allocate.name: Allocate,
    Backfill.name: Backfill,
}

NOT_BUILT: Final = frozenset({"gangpreempt", "gangreclaim", "preempt", "reclaim", "shuffle"})
"""Volcano's other actions: accepted and left out, with a warning."""

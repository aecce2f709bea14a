"""Dropping objects that live only for a time, as events do."""

from __future__ import annotations

from datetime import datetime

from hekla.domain import timestamps
from hekla.local.kinds import errors
from hekla.local.kinds.registry import Registry
from hekla.local.storage.memory import Storage
from hekla.local.verbs.deletions import Deletion
from hekla.local.verbs.objects import Objects


def drop_old(registry: Registry, storage: Storage, objects: Objects, *, now: datetime) -> int:
    """Delete what is older than its kind may be; how many that were."""
    dropped = 0
    for kind in registry:
        if kind.max_age is None:
            continue
        for entry in list(storage.select(kind)):
            made = timestamps.from_text(entry.object()["metadata"]["creationTimestamp"])
            if (now - made).total_seconds() <= kind.max_age:
                continue
            try:
                objects.delete(kind, entry.namespace, entry.name, Deletion(uid=entry.uid))
            except errors.ApiError:
                continue  # somebody else was faster
            dropped += 1
    return dropped

"""Hekla's own kinds, defined in a local cluster that is asked to.

The models that they are drawn from are slow to load, so only who defines them loads them.
"""

from __future__ import annotations

from hekla.local.kinds.registry import DEFINITIONS
from hekla.local.storage.memory import Storage
from hekla.local.verbs.objects import Objects
from hekla.local.verbs.steps import at_once


def define(storage: Storage, objects: Objects) -> None:
    """Define each kind as it is now; what an older version defined is brought up to date."""
    from hekla.api.crd import DEFINITIONS as OURS  # noqa: PLC0415

    for wanted in OURS:
        there = storage.latest(DEFINITIONS, "", wanted.name)
        if there is None:
            objects.create(DEFINITIONS, "", wanted.manifest())
            continue
        value = there.object() | {"spec": wanted.manifest()["spec"]}
        at_once(objects.replacing(DEFINITIONS, "", wanted.name, value))


def defined(storage: Storage) -> bool:
    """Whether any of them is."""
    from hekla.api.crd import DEFINITIONS as OURS  # noqa: PLC0415

    return any(storage.latest(DEFINITIONS, "", one.name) for one in OURS)

"""Hekla's own kinds, defined in a local cluster that is asked to."""

from __future__ import annotations

from hekla.api import crd
from hekla.local.objects import Objects
from hekla.local.registry import DEFINITIONS
from hekla.local.steps import at_once
from hekla.local.storage import Storage


def define(storage: Storage, objects: Objects) -> None:
    """Define each kind as it is now; what an older version defined is brought up to date."""
    for wanted in crd.DEFINITIONS:
        there = storage.latest(DEFINITIONS, "", wanted.name)
        if there is None:
            objects.create(DEFINITIONS, "", wanted.manifest())
            continue
        value = there.object() | {"spec": wanted.manifest()["spec"]}
        at_once(objects.replacing(DEFINITIONS, "", wanted.name, value))


def defined(storage: Storage) -> bool:
    """Whether any of them is."""
    return any(storage.latest(DEFINITIONS, "", one.name) for one in crd.DEFINITIONS)

"""Whatever is sent to the verbs is done or refused, and what is kept can be read again."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given, settings, strategies as st

from hekla.local.answers import columns
from hekla.local.kinds import registry
from hekla.local.kinds.errors import ApiError
from hekla.local.kinds.registry import Kind, Object
from hekla.local.patches.standard import JsonPatch, MergePatch, Patch
from hekla.local.storage.journal import Journal
from hekla.local.storage.memory import Entry, Storage, entry_of
from hekla.local.verbs.binding import binding
from hekla.local.verbs.deletions import Deletion
from hekla.local.verbs.objects import Objects
from hekla.local.verbs.steps import Writing, at_once
from tests.support import defined

NOW = datetime(2026, 1, 2, tzinfo=UTC)

JUNK = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "a", "port", "ports"]), inner, max_size=2)
    ),
    max_leaves=6,
)
OF_METADATA = (
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "uid",
    "resourceVersion",
    "generation",
    "deletionTimestamp",
)
METADATA = st.fixed_dictionaries(
    {"name": st.just("x") | JUNK}, optional=dict.fromkeys(OF_METADATA, JUNK)
)
FIELDS = ("spec", "status", "data", "type", "value", "globalDefault", "involvedObject", "kind")
BODIES = st.fixed_dictionaries(
    {"metadata": METADATA | JUNK},
    optional={
        **dict.fromkeys(FIELDS, JUNK),
        "spec": JUNK
        | st.fixed_dictionaries(
            {"containers": st.just([{"name": "c", "image": "i"}])},
            optional={"overhead": JUNK, "priorityClassName": JUNK, "priority": JUNK},
        ),
    },
)


SERVED = defined.registry()
KINDS = st.sampled_from(list(SERVED))


def with_objects(play: Callable[[Objects, Storage], None]) -> None:
    async def run(path: Path) -> None:
        storage = Storage(Journal(path), SERVED)
        objects = Objects(storage, now=lambda: NOW)
        objects.create(registry.NAMESPACES, "", {"metadata": {"name": "here"}})
        play(objects, storage)
        await storage.settled()
        await storage.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder) / "cluster.db"))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(KINDS, BODIES, BODIES), min_size=1, max_size=4))
def test_whatever_is_sent_is_done_or_refused(sent: list[tuple[Kind, Any, Any]]) -> None:
    def play(objects: Objects, storage: Storage) -> None:
        for kind, body, change in sent:
            where = (kind, "here" if kind.namespaced else "", "x")
            for act in (
                partial(objects.create, *where[:2], orjson.loads(orjson.dumps(body))),
                at_last(objects.patching, *where, MergePatch(change)),
                at_last(objects.patching, *where, MergePatch(change), status=True),
                at_last(objects.patching, *where, operations(change)),
                at_last(objects.replacing, *where, change),
                partial(bind, objects, where[1:], change),
                partial(objects.delete, *where, Deletion()),
            ):
                done_or_refused(act)
                latest = storage.latest(*where)
                if latest is not None:
                    assert_readable(kind, latest.raw)

    with_objects(play)


def at_last(
    writing: Callable[..., Writing[Entry]], *args: Any, **more: Any
) -> Callable[[], Entry]:
    """The write as something to call."""
    return lambda: at_once(writing(*args, **more))


def bind(objects: Objects, address: tuple[str, str], body: Any) -> None:
    at_once(binding(objects, address, body))


def operations(change: Object) -> Patch:
    """The same as a JSON patch."""
    return JsonPatch(
        [{"op": "add", "path": f"/{key}", "value": value} for key, value in change.items()]
    )


def done_or_refused(act: Callable[[], object]) -> None:
    try:
        act()
    except ApiError as error:
        if not 400 <= error.code < 500:
            raise


def assert_readable(kind: Kind, raw: bytes) -> None:
    value: Object = orjson.loads(raw)
    assert entry_of(kind, value, raw).uid
    assert value["kind"] == kind.name
    shown = columns.of(kind)
    assert len(shown.cells(value, NOW)) == len(shown.heads)

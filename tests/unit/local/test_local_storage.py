from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from hekla.local.kinds import errors
from hekla.local.kinds.registry import CONFIGMAPS, NAMESPACES, Object, Registry
from hekla.local.patches.standard import MergePatch
from hekla.local.serving.faults import Faults
from hekla.local.serving.watches import Watcher, Watches
from hekla.local.storage import selection
from hekla.local.storage.journal import Journal, JournalError
from hekla.local.storage.memory import Storage
from hekla.local.verbs.deletions import Deletion
from hekla.local.verbs.objects import Objects
from hekla.local.verbs.steps import Step, at_once, carry_out

NOW = datetime(2026, 1, 2, tzinfo=UTC)
T = TypeVar("T")


class World:
    """A storage on a file, with the verbs and the watches."""

    def __init__(self, path: Path, *, history: int = 1000) -> None:
        self.storage = Storage(Journal(path), Registry())
        self.objects = Objects(self.storage, now=lambda: NOW)
        self.watches = Watches(self.storage, Faults(), history=history)
        if self.storage.latest(NAMESPACES, "", "here") is None:
            self.objects.create(NAMESPACES, "", {"metadata": {"name": "here"}})

    def put(self, name: str, app: str) -> None:
        """Create or replace a config map."""
        body = {"metadata": {"name": name, "labels": {"app": app}}}
        if self.storage.latest(CONFIGMAPS, "here", name) is None:
            self.objects.create(CONFIGMAPS, "here", body)
        else:
            at_once(self.objects.replacing(CONFIGMAPS, "here", name, body))

    def delete(self, name: str) -> None:
        """Delete a config map, if there is one."""
        if self.storage.latest(CONFIGMAPS, "here", name) is not None:
            self.objects.delete(CONFIGMAPS, "here", name, Deletion())

    def state(self, label_selector: str = "") -> dict[str, str]:
        """The version of each config map that lasts."""
        chosen = selection.parse(CONFIGMAPS, "here", label_selector)
        return {entry.name: str(entry.version) for entry in self.objects.select(chosen)}


def in_world(play: Callable[[World], Awaitable[T]], *, history: int = 1000) -> T:
    """What ``play`` gives, in a new world."""

    async def run(path: Path) -> T:
        world = World(path, history=history)
        await world.storage.settled()
        result = await play(world)
        await world.storage.close()
        return result

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(Path(folder) / "cluster.db"))


@contextmanager
def file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "cluster.db"


NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, st.sampled_from(["web", "db"])),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("settle")),
        st.tuples(st.just("watch"), st.sampled_from(["", "app=web", "app!=web"])),
    ),
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(STEPS, st.sampled_from([2, 5, 1000]))
def test_whoever_lists_and_then_watches_ends_with_the_present_state(
    steps: list[tuple[str, ...]], history: int
) -> None:
    async def play(world: World) -> None:
        watching = []
        for step in [*steps, ("settle",)]:
            match step:
                case "put", name, app:
                    world.put(name, app)
                case "delete", name:
                    world.delete(name)
                case ("settle",):
                    await world.storage.settled()
                case "watch", text:
                    listed = (world.state(text), world.storage.version)
                    watching.append((text, listed, world))
        for text, (state, version), _ in watching:
            watcher = open_unless_expired(world, text, version)
            if watcher is None:
                assert history < len(steps)
            else:
                assert replayed(state, watcher.rest()) == world.state(text)

    in_world(play, history=history)


def open_unless_expired(world: World, label_selector: str, since: int) -> Watcher | None:
    chosen = selection.parse(CONFIGMAPS, "here", label_selector)
    try:
        return world.watches.open(chosen, since)
    except errors.ApiError as error:
        if error.code != 410:
            raise
        return None


def replayed(state: dict[str, str], lines: bytes) -> dict[str, str]:
    """``state`` after the events, each of which must fit."""
    newest = 0
    for line in lines.splitlines():
        event = orjson.loads(line)
        metadata = event["object"]["metadata"]
        assert int(metadata["resourceVersion"]) > newest
        newest = int(metadata["resourceVersion"])
        assert (metadata["name"] in state) == (event["type"] != "ADDED")
        if event["type"] == "DELETED":
            del state[metadata["name"]]
        else:
            state[metadata["name"]] = metadata["resourceVersion"]
    return state


@settings(max_examples=15, deadline=None)
@given(STEPS)
def test_what_lasts_is_there_after_a_restart_and_versions_go_on(
    steps: list[tuple[str, ...]],
) -> None:
    async def before(path: Path) -> tuple[dict[str, str], int]:
        world = World(path)
        for step in steps:
            if step[0] == "put":
                world.put(*step[1:])
            elif step[0] == "delete":
                world.delete(step[1])
        await world.storage.settled()
        await world.storage.close()
        return world.state(), world.storage.version

    async def after(path: Path) -> tuple[dict[str, str], int, int]:
        world = World(path)
        found = world.state(), world.storage.version
        world.put("later", "web")
        await world.storage.settled()
        await world.storage.close()
        return *found, int(world.state()["later"])

    with file() as path:
        state, version = asyncio.run(before(path))
        assert asyncio.run(after(path)) == (state, version, version + 1)


def test_a_write_is_seen_by_the_next_writer_at_once_and_by_readers_when_it_lasts() -> None:
    async def play(world: World) -> None:
        world.put("a", "web")

        assert world.storage.latest(CONFIGMAPS, "here", "a") is not None
        assert world.storage.get(CONFIGMAPS, "here", "a") is None
        await world.storage.settled()
        assert world.storage.get(CONFIGMAPS, "here", "a") is not None

    in_world(play)


class FullDisk(Journal):
    """A journal on a disk that is full for as many writes as it is told."""

    failures = 0

    def write(self, rows: Any, version: int) -> None:
        if self.failures:
            self.failures -= 1
            raise JournalError("the disk is full")
        super().write(rows, version)


def test_a_write_that_cannot_last_has_not_happened_nor_what_rests_on_it() -> None:
    async def run(path: Path) -> None:
        journal = FullDisk(path)
        storage = Storage(journal, Registry())
        objects = Objects(storage, now=lambda: NOW)
        objects.create(NAMESPACES, "", {"metadata": {"name": "here"}})
        await storage.settled()
        journal.failures = 1
        body: Object = {"metadata": {"name": "a"}}
        objects.create(CONFIGMAPS, "here", body)
        first = asyncio.ensure_future(storage.settled())
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # the first batch is being written: this one is gathered
        objects.delete(CONFIGMAPS, "here", "a", Deletion())

        with pytest.raises(JournalError):
            await storage.settled()
        with pytest.raises(JournalError):
            await first
        assert storage.latest(CONFIGMAPS, "here", "a") is None
        objects.create(CONFIGMAPS, "here", body)
        await storage.settled()
        assert storage.get(CONFIGMAPS, "here", "a") is not None
        await storage.close()

    with file() as path:
        asyncio.run(run(path))


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    path.write_bytes(b"this is no database, but long enough to look at" * 100)

    with pytest.raises(JournalError, match="cannot use"):
        Journal(path)


def test_a_watcher_that_does_not_read_is_closed() -> None:
    async def play(world: World) -> None:
        watcher = world.watches.open(selection.parse(CONFIGMAPS, None), world.storage.version)
        for _ in range(30_000):
            watcher.push(b"{}\n")

        assert watcher.closed
        assert len(watcher.rest()) <= 20_000 * 3

    in_world(play)


class Asked:
    """A review that notes what it is asked, and does something meanwhile."""

    def __init__(self, meanwhile: Callable[[Step], object]) -> None:
        self.steps: list[tuple[str, bool]] = []
        self._meanwhile = meanwhile

    def concerns(self, step: Step) -> bool:
        return step.kind is CONFIGMAPS

    async def review(self, step: Step) -> Object | None:
        self.steps.append((step.operation, step.mutating))
        self._meanwhile(step)
        if not step.mutating or step.value is None:
            return step.value
        return {**step.value, "data": {"by": "review"}}


def test_admission_is_asked_before_and_after_the_rules_and_may_change_a_write() -> None:
    async def play(world: World) -> Asked:
        asked = Asked(lambda _: None)
        body: Object = {"metadata": {"generateName": "x-"}}
        made = await carry_out(world.objects.creating(CONFIGMAPS, "here", body), asked)
        assert made.object()["data"] == {"by": "review"}
        patching = world.objects.patching(
            CONFIGMAPS, "here", made.name, MergePatch({"data": {"a": "b"}})
        )
        await carry_out(patching, asked)
        await carry_out(
            world.objects.deleting(CONFIGMAPS, "here", made.name, Deletion()), asked
        )
        return asked

    assert in_world(play).steps == [
        ("CREATE", True),
        ("CREATE", False),
        ("UPDATE", True),
        ("UPDATE", False),
        ("DELETE", False),
    ]


def test_a_patch_is_made_again_on_what_was_written_while_admission_was_asked() -> None:
    async def play(world: World) -> tuple[int, str, dict[str, str]]:
        world.put("shared", "first")
        later = iter(["second"])

        def meanwhile(_: Step) -> None:
            for app in later:
                world.put("shared", app)

        asked = Asked(meanwhile)
        writing = world.objects.patching(
            CONFIGMAPS, "here", "shared", MergePatch({"metadata": {"labels": {"b": "c"}}})
        )
        entry = await carry_out(writing, asked)
        read = entry.object()["metadata"]["resourceVersion"]
        body = {"metadata": {"name": "shared", "resourceVersion": read}}
        asked = Asked(lambda _: world.put("shared", "third"))
        with pytest.raises(errors.ApiError) as refused:
            await carry_out(world.objects.replacing(CONFIGMAPS, "here", "shared", body), asked)
        return refused.value.code, refused.value.reason, dict(entry.labels)

    assert in_world(play) == (409, "Conflict", {"app": "second", "b": "c"})


def test_of_two_creates_under_review_one_succeeds() -> None:
    async def play(world: World) -> int:
        def meanwhile(step: Step) -> None:
            if not step.mutating:
                world.put("one", "other")

        asked = Asked(meanwhile)
        body: Object = {"metadata": {"name": "one"}}
        with pytest.raises(errors.ApiError) as refused:
            await carry_out(world.objects.creating(CONFIGMAPS, "here", body), asked)
        return refused.value.code

    assert in_world(play) == 409

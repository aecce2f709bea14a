"""Watchers: versions only grow, and the last state and the delete always arrive."""

from __future__ import annotations

import threading
import time
from contextlib import closing, suppress
from datetime import timedelta

import pytest
from sqlalchemy import text

from hekla.api.job import Job
from hekla.domain.errors import CursorExpiredError, ExhaustedError, UnavailableError
from hekla.domain.phases import QueueState
from hekla.store import feed, hub as hubs, jobs, pod_groups, queues
from hekla.store.database import Database, Session
from hekla.store.feed import Change, Cursor
from hekla.store.hub import Hub, Item
from hekla.store.watching import stream
from tests.integration.store.test_store_feed import age_everything, turn
from tests.support.feed_writers import KIND, Writers, load
from tests.support.objects import make_queue
from tests.support.store import add_group, add_job, wait_for_waiting
from tests.support.waiting import wait_until

PATIENCE_SECONDS = 30.0


@pytest.fixture
def hub(database: Database) -> Hub:
    """One that has begun to read."""
    hub = Hub(database, {KIND: load})
    hub.read_once()
    return hub


class Watch:
    """One watcher, driven step by step."""

    def __init__(self, hub: Hub, cursor: str = "", kind: str = KIND) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        self._stream = hub.watch(kind, cursor, going=lambda: time.monotonic() < deadline)
        self.cursor = cursor

    def take(self, count: int = 1) -> list[Item]:
        """So many items; bookmarks between them are noted. StopIteration: they do not come."""
        items: list[Item] = []
        while len(items) < count:
            position, item = next(self._stream)
            self.cursor = str(position)
            if item is not None:
                items.append(item)
        return items

    def bookmark(self) -> None:
        """Read on to the next cursor that comes alone."""
        while True:
            position, item = next(self._stream)
            self.cursor = str(position)
            if item is None:
                return

    def close(self) -> None:
        """Leave."""
        self._stream.close()


def told(items: list[Item]) -> list[tuple[str, int]]:
    return [
        (item.type, item.object["version"] if item.type == "DELETED" else item.object)
        for item in items
    ]


def test_a_watch_from_nothing_begins_with_all_there_is(database: Database, hub: Hub) -> None:
    writers = Writers(database, objects=3, seed=0)
    made = {writers.add(name) for name in ("a", "b", "c")}

    with closing(Watch(hub)) as watch:
        items = watch.take(3)
        watch.bookmark()
        hub.read_once()
        writers.add("a")
        hub.read_once()
        [more] = watch.take()

    assert {item.uid for item in items} == made
    assert told(items) == [("ADDED", 1)] * 3
    assert told([more]) == [("MODIFIED", 2)]


def test_a_watch_that_broke_off_in_the_first_list_begins_again(
    database: Database, hub: Hub
) -> None:
    writers = Writers(database, objects=3, seed=0)
    made = {writers.add(name) for name in ("a", "b", "c")}

    with closing(Watch(hub)) as watch:
        watch.take(2)
    with closing(Watch(hub, watch.cursor)) as again:
        items = again.take(3)

    assert watch.cursor == ""
    assert {item.uid for item in items} == made


def test_a_watch_goes_on_where_another_hub_left_off(database: Database, hub: Hub) -> None:
    other = Hub(database, {KIND: load})
    writers = Writers(database, objects=3, seed=0)
    writers.add("a")
    with closing(Watch(hub)) as watch:
        watch.bookmark()
    writers.add("a")
    writers.add("b")
    other.read_once()
    writers.add("c")

    with closing(Watch(other, watch.cursor)) as resumed:
        assert told(resumed.take(3)) == [("MODIFIED", 2), ("ADDED", 1), ("ADDED", 1)]
        writers.add("b")
        other.read_once()
        assert told(resumed.take()) == [("MODIFIED", 2)]


def test_a_watch_that_begins_before_its_hub_reads_misses_nothing(database: Database) -> None:
    hub = Hub(database, {KIND: load})
    writers = Writers(database, objects=3, seed=0)

    with closing(Watch(hub)) as watch:
        watch.bookmark()
        writers.add("a")
        hub.read_once()
        writers.add("b")
        hub.read_once()

        assert told(watch.take(2)) == [("ADDED", 1), ("ADDED", 1)]


def test_a_change_during_the_catch_up_comes_once(database: Database) -> None:
    """The reader and the catch-up both see it; what saw it first counts."""
    writers = Writers(database, objects=3, seed=0)
    writers.add("a")
    changed: list[str] = []
    hub: Hub

    def loader(session: Session, uids: list[str] | None) -> dict[str, int]:
        found = dict(load(session, uids))
        if uids is None and not changed:
            # In the midst of the first list: the list does not show it, the reader tells it.
            changed.append(writers.add("a"))
            changed.append(writers.add("b"))
            hub.read_once()
        return found

    hub = Hub(database, {KIND: loader})  # type: ignore[dict-item]
    hub.read_once()

    with closing(Watch(hub)) as watch:
        assert told(watch.take()) == [("ADDED", 1)]
        assert told(watch.take(2)) == [("MODIFIED", 2), ("ADDED", 1)]
        writers.add("a")
        hub.read_once()
        assert told(watch.take()) == [("MODIFIED", 3)]


def test_what_the_catch_up_saw_is_not_told_again_by_the_reader(
    database: Database, hub: Hub
) -> None:
    writers = Writers(database, objects=3, seed=0)
    with closing(Watch(hub)) as watch:
        watch.bookmark()
    writers.add("a")

    with closing(Watch(hub, watch.cursor)) as again:
        assert told(again.take()) == [("ADDED", 1)]
        hub.read_once()  # reads it, too
        writers.add("a")
        hub.read_once()
        assert told(again.take()) == [("MODIFIED", 2)]


def test_states_between_may_merge_and_the_delete_still_comes(
    database: Database, hub: Hub
) -> None:
    writers = Writers(database, objects=1, seed=0)
    uid = writers.add("a")
    with closing(Watch(hub)) as watch:
        watch.take()
        for _ in range(3):
            writers.add("a")
        with database.transaction() as session:
            writers.drop(session, ["a"])
        hub.read_once()
        [gone] = watch.take()
        new = writers.add("a")
        hub.read_once()
        [added] = watch.take()

    assert (gone.uid, told([gone])) == (uid, [("DELETED", 5)])
    assert (added.uid, told([added])) == (new, [("ADDED", 1)])


def test_what_is_read_last_is_told_last_and_only_it_moves_the_cursor(
    database: Database, hub: Hub
) -> None:
    writers = Writers(database, objects=9, seed=0)
    with closing(Watch(hub)) as watch:
        watch.bookmark()
        before = watch.cursor
        for name in ("a", "b", "a", "c"):
            writers.add(name)
        hub.read_once()

        assert told(watch.take(2)) == [("ADDED", 1), ("ADDED", 2)]
        assert watch.cursor == before, "who breaks off here gets all three again"
        watch.take()
        assert watch.cursor != before
    with closing(Watch(hub, before)) as again:
        assert len(again.take(3)) == 3


def test_a_watcher_that_does_not_read_is_ended_and_may_resume(
    database: Database, hub: Hub
) -> None:
    writers = Writers(database, objects=0, seed=0)
    size = hubs.LONGEST_QUEUE // 2 + 1
    names = [f"q{number}" for number in range(size)]

    def change_all() -> None:
        with database.transaction() as session:
            writers.touch(session, names)
        hub.read_once()

    with closing(Watch(hub)) as slow, closing(Watch(hub)) as quick:
        slow.bookmark()
        quick.bookmark()
        for _ in range(3):
            change_all()
            quick.take(size)
        with pytest.raises(ExhaustedError, match="resume"):
            slow.take(1)
    with closing(Watch(hub, slow.cursor)) as resumed:
        items = resumed.take(size)

    assert {version for _, version in told(items)} == {3}


def test_one_step_larger_than_the_queue_is_handed_out_all_the_same(
    database: Database, hub: Hub
) -> None:
    writers = Writers(database, objects=0, seed=0)
    names = [f"q{number}" for number in range(hubs.LONGEST_QUEUE + 1)]

    with closing(Watch(hub)) as watch:
        watch.bookmark()
        with database.transaction() as session:
            writers.touch(session, names)
        hub.read_once()

        assert len(watch.take(len(names))) == len(names)


def test_a_stopping_hub_ends_its_watchers(database: Database, hub: Hub) -> None:
    with closing(Watch(hub)) as watch:
        watch.bookmark()
        hub.stop()
        with pytest.raises(UnavailableError, match="resume elsewhere"):
            watch.take()


def test_a_watcher_stops_when_it_is_told(database: Database, hub: Hub) -> None:
    Writers(database, objects=0, seed=0).add("a")

    found = list(hub.watch(KIND, "", going=lambda: False))

    assert [item is None for _, item in found] == [False, True]


def test_a_hostile_cursor_is_an_expired_one(database: Database, hub: Hub) -> None:
    for words in ("nonsense", f"{'0' * 32}:1:2:", "\0"):
        with pytest.raises(CursorExpiredError):
            next(hub.watch(KIND, words, going=lambda: True))


def test_a_hub_that_slept_while_the_ring_turned_has_everybody_list_again(
    database: Database,
) -> None:
    hub = Hub(database, {KIND: load}, long_pause=timedelta(0))
    hub.read_once()
    writers = Writers(database, objects=0, seed=0)
    with closing(Watch(hub)) as watch:
        watch.bookmark()
        writers.add("lost")
        age_everything(database)
        assert turn(database)

        with pytest.raises(CursorExpiredError, match="too old"):
            hub.read_once()
        with pytest.raises(CursorExpiredError, match="too old"):
            watch.take()

    assert not hub.read_once(), "it begins again from now"
    with closing(Watch(hub)) as again:
        again.take()
        writers.add("new")
        assert hub.read_once()
        assert told(again.take()) == [("ADDED", 1)]


@pytest.mark.parametrize("who", ["the hub", "a watcher that catches up"])
def test_a_ring_that_turns_during_a_read_leaves_no_gap_unnoticed(
    database: Database, who: str
) -> None:
    """The snapshot of the read is older than the turn, what it looks at is not."""
    hub = Hub(database, {KIND: load}, long_pause=timedelta(0))
    hub.read_once()
    with closing(Watch(hub)) as watch:
        watch.bookmark()
    Writers(database, objects=0, seed=0).add("lost")
    age_everything(database)
    caught: list[Exception] = []

    def read() -> None:
        try:
            if who == "the hub":
                hub.read_once()
            else:
                Watch(hub, watch.cursor).take()
        except CursorExpiredError as error:
            caught.append(error)

    with database.transaction() as turning:
        assert feed.turn(turning)
        reader = threading.Thread(target=read)
        reader.start()
        wait_for_waiting(database)
    reader.join()

    assert len(caught) == 1


def test_a_new_incarnation_has_everybody_list_again(database: Database, hub: Hub) -> None:
    with closing(Watch(hub)) as watch:
        watch.bookmark()
        with database.transaction() as session:
            session.execute(text("update store set incarnation = gen_random_uuid()"))
        with pytest.raises(CursorExpiredError, match="another store"):
            hub.read_once()
        with pytest.raises(CursorExpiredError):
            watch.take()
    hub.read_once()
    with closing(Watch(hub)) as again:
        again.bookmark()
    assert Cursor.parse(again.cursor) != Cursor.parse(watch.cursor)


def test_postgres_going_away_is_survived_without_loss(database: Database, hub: Hub) -> None:
    writers = Writers(database, objects=0, seed=0)
    with closing(Watch(hub)) as watch:
        watch.bookmark()
        writers.add("a")
        with database.transaction() as session:
            # The connections in the pool, all but this one, break.
            session.execute(
                text(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where datname = current_database() and pid <> pg_backend_pid()"
                )
            )

        def read() -> bool:
            with suppress(UnavailableError):
                return hub.read_once()
            return False

        wait_until(read, what="the hub to read again")

        assert told(watch.take()) == [("ADDED", 1)]


def test_objects_of_kinds_that_nobody_watches_are_not_loaded(database: Database) -> None:
    loaded: list[str] = []

    def loader(session: Session, uids: list[str] | None) -> dict[str, int]:
        loaded.append("queue")
        return dict(load(session, uids))

    hub = Hub(database, {KIND: loader, "other": loader})  # type: ignore[dict-item]
    hub.read_once()
    writers = Writers(database, objects=0, seed=0)
    writers.add("a")
    assert not hub.read_once()
    assert loaded == []

    with hub.subscribed([KIND]):
        writers.add("a")
        assert hub.read_once()
    assert loaded == ["queue"]


def test_an_object_is_rendered_once_for_all_watchers(database: Database, hub: Hub) -> None:
    rendered: list[int] = []

    def render(found: int) -> str:
        rendered.append(found)
        return f"v{found}"

    with closing(Watch(hub)) as one, closing(Watch(hub)) as other:
        one.bookmark()
        other.bookmark()
        Writers(database, objects=0, seed=0).add("a")
        hub.read_once()
        texts = [watch.take()[0].rendered(render) for watch in (one, other)]

    assert texts == ["v1", "v1"]
    assert rendered == [1]


def test_an_idle_watcher_gets_a_newer_cursor_now_and_then(database: Database, hub: Hub) -> None:
    stream = hub.watch(KIND, "", going=lambda: True, bookmark=0.0)
    first, _ = next(stream)
    with database.transaction() as session:
        feed.record(session, Change("other", "x", 1, feed.ADDED))
    hub.read_once()

    later, item = next(stream)

    assert item is None
    assert later.covers(first)
    assert later != first
    stream.close()


def test_the_lag_of_a_hub_is_known(hub: Hub) -> None:
    before = time.monotonic()
    hub.read_once()
    behind = hub.seconds_behind

    assert 0 <= behind <= time.monotonic() - before


def test_jobs_groups_and_queues_are_told_as_the_api_shows_them(database: Database) -> None:
    hub = Hub(
        database,
        {
            jobs.KIND: jobs.documents,
            pod_groups.KIND: pod_groups.documents,
            queues.KIND: queues.load,
        },
    )
    hub.read_once()
    with (
        closing(Watch(hub, kind=jobs.KIND)) as job_watch,
        closing(Watch(hub, kind=pod_groups.KIND)) as group_watch,
        closing(Watch(hub, kind=queues.KIND)) as queue_watch,
    ):
        for watch in (job_watch, group_watch, queue_watch):
            watch.bookmark()
        job = add_job(database)
        group = add_group(database, job)
        with database.transaction() as session:
            queues.make_well_known(session)
        with database.transaction() as session:
            queues.change(session, "default", state=QueueState.CLOSED)
            made = queues.make(session, make_queue("q"), uid=job.uid)
        with database.transaction() as session:
            pod_groups.remove(session, group.uid)
        hub.read_once()

        [told_job] = job_watch.take()
        [told_group] = group_watch.take()
        told_queues = {item.object.metadata.name: item for item in queue_watch.take(3)}

    assert (told_job.type, Job.model_validate(told_job.object)) == ("ADDED", job.job)
    assert told_group.type == "DELETED"
    assert told_group.object["metadata"]["uid"] == str(group.uid)
    assert told_queues["default"].object.status.state == "Closed"
    assert told_queues["q"].object == made


def test_an_object_that_cannot_be_read_hides_no_other(database: Database) -> None:
    hub = Hub(database, {jobs.KIND: jobs.documents})
    hub.read_once()
    odd, good = add_job(database, "odd"), add_job(database, "good")
    with database.transaction() as session:
        session.execute(
            text("""update job set spec = '{"fromTheFuture": 1}' where uid = :uid"""),
            {"uid": odd.uid},
        )

    told = stream(
        hub,
        jobs.KIND,
        "",
        lambda: True,
        wanted=lambda _: True,
        render=lambda document: Job.model_validate(document).metadata.name,
        respond=lambda _, type_, name: (type_, name),
    )
    with closing(told):
        assert [next(told), next(told)] == [("ADDED", "good"), ("BOOKMARK", None)]
        with database.transaction() as session:
            feed.record(session, Change(jobs.KIND, str(odd.uid), 2, feed.MODIFIED))
            jobs.mark_deleting(session, good.uid)
        hub.read_once()

        assert next(told) == ("ADDED", "good")

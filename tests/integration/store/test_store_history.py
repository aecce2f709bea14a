"""What is remembered of jobs that were removed, and for how long."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from hekla.api.job import Job, JobState, JobStatus
from hekla.domain.errors import NotFoundError, UnavailableError
from hekla.domain.names import Key
from hekla.domain.phases import JobAction, JobEvent
from hekla.domain.trigger import Command, Trigger, TriggerState
from hekla.store import commands, events, feed, history, jobs, triggers
from hekla.store.database import Database
from hekla.store.events import NORMAL, WARNING, Event
from hekla.store.jobs import StoredJob
from hekla.store.objects import Place
from tests.support.store import (
    add_group,
    add_job,
    after,
    plan,
    read_job,
    running,
    sight,
    value,
    wait_for_waiting,
)


def retire(database: Database, job: StoredJob) -> None:
    with database.transaction() as session:
        history.retire(session, job)


def tell(database: Database, job: StoredJob, *wanted: Event) -> None:
    with database.transaction() as session:
        events.add(session, job.uid, wanted)


def told(database: Database, job: UUID) -> list[Event]:
    with database.transaction() as session:
        return [one._replace(at=None) for one in events.of_job(session, job)]


def count(database: Database, table: str) -> int:
    with database.transaction() as session:
        return int(value(session, f"select count(*) from {table}"))


def test_events_are_kept_in_order_and_repeated_ones_left_out(database: Database) -> None:
    job, other = add_job(database), add_job(database, "other")
    first, second = Event(NORMAL, "Made", "a pod"), Event(WARNING, "NoRoom", "none")

    tell(database, job, first, second)
    tell(database, job, second)
    tell(database, other, first)
    tell(database, job, first)
    tell(database, job)

    assert told(database, job.uid) == [first, second, first]
    assert told(database, other.uid) == [first]


def test_the_last_200_events_of_a_job_are_kept(database: Database) -> None:
    job, other = add_job(database), add_job(database, "other")
    tell(database, other, Event(NORMAL, "r", "kept"))

    tell(database, job, *[Event(NORMAL, "r", f"{number}") for number in range(150)])
    tell(database, job, *[Event(NORMAL, "r", f"{number}") for number in range(150, 330)])

    assert [one.message for one in told(database, job.uid)] == [
        f"{number}" for number in range(130, 330)
    ]
    assert len(told(database, other.uid)) == 1


def test_a_message_of_any_length_and_bytes_is_stored(database: Database) -> None:
    job = add_job(database)

    tell(database, job, Event(WARNING, "r", "\0" + "ä" * 5000))

    assert [one.message for one in told(database, job.uid)] == ["ä" * 1024]


def test_a_removed_job_is_remembered_with_all_that_belonged_to_it(database: Database) -> None:
    job = add_job(database, "j")
    group = add_group(database, job)
    [row] = running(database, job, ("t", 0))
    after(database, sight(row, phase="Succeeded", exit_codes={"c": 0}, gone=True))
    tell(database, job, Event(NORMAL, "Made", "a pod"), Event(WARNING, "Odd", "very"))
    with database.transaction() as session:
        commands.ask(session, job.uid, Command(0, JobAction.ABORT_JOB))
        fired = Trigger(0, "t", JobEvent.TASK_COMPLETED, TriggerState.FIRED, JobAction.SYNC_JOB)
        triggers.put(session, job.uid, [fired])
        jobs.record(
            session, job, started_at=None, finished_at=datetime(2026, 1, 2, tzinfo=UTC),
            status=JobStatus(state=JobState(phase="Completed"), succeeded=1), counters={},
        )  # fmt: skip
    with database.transaction() as session:
        cursor = feed.start(session)

    retire(database, job)

    for table in ("job", "attempt", "command", "trigger", "job_event", "pod_group"):
        assert count(database, table) == 0, table
    with database.transaction() as session:
        found = history.job(session, uid=job.uid)
        assert history.job(session, key=Key("default", "j")) == found
        [past] = history.attempts(session, job.uid, limit=9)
        remembered = history.events_of(session, job.uid)
        changes = feed.since(session, cursor).changes
        with pytest.raises(NotFoundError):
            jobs.get(session, job.key)
    assert (found.status.state.phase, found.status.succeeded) == ("Completed", 1)
    assert found.spec == job.job.spec
    assert (past["uid"], past["outcome"]) == (str(row.uid), "Succeeded")
    assert past["exit_codes"] == {"c": 0}
    assert [one._replace(at=None) for one in remembered] == [
        Event(NORMAL, "Made", "a pod"),
        Event(WARNING, "Odd", "very"),
    ]
    assert all(one.at is not None for one in remembered)
    gone = {one.kind: one for one in changes}
    assert gone["pod_group"].uid == str(group.uid)
    assert (gone["job"].type, gone["job"].version) == ("DELETED", 3)
    last = Job.model_validate(gone["job"].last)
    assert last == found
    assert last.metadata.resource_version == "3"


def test_a_job_is_remembered_as_it_was_at_its_removal(database: Database) -> None:
    stale = add_job(database)
    with database.transaction() as session:
        jobs.mark_deleting(session, stale.uid)
    with database.transaction() as session:
        cursor = feed.start(session)

    retire(database, stale)

    with database.transaction() as session:
        assert history.job(session, uid=stale.uid).metadata.deletion_timestamp is not None
        [gone] = feed.since(session, cursor).changes
    assert gone.version == 3, "after the version that the deletion had"
    with pytest.raises(NotFoundError):
        retire(database, stale)


def test_a_removal_waits_for_a_command_that_is_being_given(database: Database) -> None:
    job = add_job(database)

    with database.transaction() as session:
        commands.ask(session, job.uid, Command(0, JobAction.ABORT_JOB))
        removing = threading.Thread(target=retire, args=(database, job))
        removing.start()
        wait_for_waiting(database)
    removing.join()

    assert [count(database, table) for table in ("job", "command", "job_history")] == [0, 0, 1]


def test_a_removal_that_is_taken_back_leaves_everything(database: Database) -> None:
    job = add_job(database)
    plan(database, job, ("t", 0))

    def change_ones_mind() -> None:
        with database.transaction() as session:
            history.retire(session, job)
            raise KeyError

    with pytest.raises(KeyError):
        change_ones_mind()

    assert read_job(database, job.uid) == job
    assert (count(database, "attempt"), count(database, "job_history")) == (1, 0)


def test_the_last_job_of_a_name_is_the_one_remembered(database: Database) -> None:
    for number in range(3):
        retire(database, add_job(database, "j", min_available=number))

    with database.transaction() as session:
        assert history.job(session, key=Key("default", "j")).spec.min_available == 2
        with pytest.raises(NotFoundError, match="nor is it remembered"):
            history.job(session, key=Key("default", "other"))
        with pytest.raises(NotFoundError):
            history.job(session, uid=uuid4())
        assert history.events_of(session, uuid4()) == []


def test_attempts_of_a_removed_job_are_paged(database: Database) -> None:
    job = add_job(database)
    rows = plan(database, job, *[("t", index) for index in range(5)])
    retire(database, job)

    seen: list[dict[str, Any]] = []
    place = None
    with database.transaction() as session:
        while page := history.attempts(session, job.uid, after=place, limit=2):
            seen += [dict(row) for row in page]
            last = page[-1]
            created = datetime.fromisoformat(last["created_at"])
            place = Place(created, UUID(last["uid"]))

    assert sorted(row["uid"] for row in seen) == sorted(str(row.uid) for row in rows)


def test_months_get_partitions_of_their_own_and_what_lay_elsewhere_moves_there(
    database: Database,
) -> None:
    job = add_job(database)
    plan(database, job, ("t", 0))
    retire(database, job)
    assert count(database, "job_history_default") == 1
    today = datetime.now(UTC)

    with database.transaction() as session:
        made = history.make_partitions(session, today)
    with database.transaction() as session:
        assert history.make_partitions(session, today) == []

    assert len(made) == 2 * len(history.TABLES)
    assert f"job_history_{today:%Y_%m}" in made
    assert count(database, "job_history_default") == 0
    assert count(database, f"attempt_history_{today:%Y_%m}") == 1
    with database.transaction() as session:
        assert history.job(session, uid=job.uid).metadata.name == "j"
        indexes = "select count(*) from pg_indexes where tablename = :name"
        mine = value(session, indexes, {"name": f"job_history_{today:%Y_%m}"})
        assert mine == value(session, indexes, {"name": "job_history_default"})
    retire(database, add_job(database, "another"))
    assert count(database, f"job_history_{today:%Y_%m}") == 2


def test_months_that_nobody_made_a_partition_for_get_one_afterwards(database: Database) -> None:
    job = add_job(database)
    retire(database, job)
    with database.transaction() as session:
        session.execute(text("update job_history set removed_at = '2025-12-31 23:59:59.9+00'"))

    with database.transaction() as session:
        made = history.make_partitions(session, datetime(2026, 2, 10, tzinfo=UTC))

    assert [name for name in made if name.startswith("job_history")] == [
        "job_history_2025_12",
        "job_history_2026_02",
        "job_history_2026_03",
    ]
    assert count(database, "job_history_2025_12") == 1


def test_a_month_is_dropped_once_all_of_it_is_old_enough(database: Database) -> None:
    january = datetime(2026, 1, 15, tzinfo=UTC)
    with database.transaction() as session:
        history.make_partitions(session, january)
    job = add_job(database)
    retire(database, job)
    with database.transaction() as session:
        session.execute(text("update job_history set removed_at = '2026-01-31 23:00+00'"))

    with database.transaction() as session:
        end = datetime(2026, 2, 1, tzinfo=UTC)
        assert history.drop_partitions(session, end - timedelta(microseconds=1)) == []
        dropped = history.drop_partitions(session, end)

    assert dropped == [f"{table}_2026_01" for table in history.TABLES]
    with database.transaction() as session, pytest.raises(NotFoundError):
        history.job(session, uid=job.uid)
    assert count(database, "job_history_2026_02") == 0
    with database.transaction() as session:
        history.drop_partitions(session, datetime(2099, 1, 1, tzinfo=UTC))
    assert count(database, "job_history_default") == 0, "the default is never dropped"


def test_partitions_are_not_waited_for_while_removals_are_under_way(database: Database) -> None:
    job = add_job(database)
    failed: list[Exception] = []

    def maintain() -> None:
        try:
            with database.transaction() as session:
                history.make_partitions(session, datetime.now(UTC))
        except UnavailableError as error:
            failed.append(error)

    with database.transaction() as session:
        history.retire(session, job)
        maintaining = threading.Thread(target=maintain)
        maintaining.start()
        maintaining.join()

    assert len(failed) == 1
    maintain()
    assert len(failed) == 1

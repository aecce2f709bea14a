"""Jobs and commands, stored and read back."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings

from hekla.api.job import Job, JobState, JobStatus
from hekla.api.meta import ObjectMeta
from hekla.domain.errors import AlreadyExistsError, ConflictError, NotFoundError
from hekla.domain.names import Key
from hekla.domain.phases import JobAction, JobPhase
from hekla.domain.trigger import Command
from hekla.store import commands, feed, history, jobs, work
from hekla.store.database import Database
from hekla.store.jobs import StoredJob
from hekla.store.objects import Place, to_json
from tests.support.objects import make_job, make_task, models
from tests.support.store import (
    add_job,
    claim,
    due,
    forget_work,
    read_job,
    wait_for_waiting,
)


def record(database: Database, stored: StoredJob, **changes: object) -> int:
    values: dict[str, object] = {
        "status": stored.job.status,
        "counters": stored.counters,
        "started_at": stored.started_at,
        "finished_at": stored.finished_at,
    }
    with database.transaction() as session:
        return jobs.record(session, stored, **values | changes)  # type: ignore[arg-type]


def news(database: Database, cursor: feed.Cursor) -> list[tuple[str, int]]:
    with database.transaction() as session:
        return [(one.type, one.version) for one in feed.since(session, cursor).changes]


def here(database: Database) -> feed.Cursor:
    with database.transaction() as session:
        return feed.start(session)


def as_numbers(value: Any) -> Any:
    """JSON as readers take it: how a number is written says nothing."""
    if isinstance(value, dict):
        return {key: as_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_numbers(item) for item in value]
    exact = isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**53)
    return value if exact or not isinstance(value, int | float) else float(value)


def test_jobs_come_back_in_the_order_they_were_given_and_want_a_look(
    database: Database,
) -> None:
    wanted = [(uuid4(), make_job(f"j{number}")) for number in range(50)]

    with database.transaction() as session:
        stored = jobs.insert_many(session, wanted)

    assert [one.uid for one in stored] == [uid for uid, _ in wanted]
    assert [one.key.name for one in stored] == [f"j{number}" for number in range(50)]
    assert due(database) == {str(uid) for uid, _ in wanted}
    assert stored[0].job.status.state.phase == JobPhase.PENDING
    assert stored[0].job.metadata.resource_version == "1"


def test_of_many_jobs_all_are_stored_or_none(database: Database) -> None:
    add_job(database, "taken")
    forget_work(database)
    cursor = here(database)

    with (
        database.transaction() as session,
        pytest.raises(AlreadyExistsError, match=r"default/taken exists already$"),
    ):
        jobs.insert_many(session, [(uuid4(), make_job("fresh")), (uuid4(), make_job("taken"))])

    with database.transaction() as session:
        assert [one.key.name for one in jobs.page(session, limit=9)] == ["taken"]
    assert due(database) == set()
    assert news(database, cursor) == []


def test_two_jobs_of_one_name_in_one_request_name_it(database: Database) -> None:
    names = ["a", "twice", "twice"]

    with (
        database.transaction() as session,
        pytest.raises(AlreadyExistsError, match="default/twice exists"),
    ):
        jobs.insert_many(session, [(uuid4(), make_job(name)) for name in names])


def test_a_name_is_taken_until_its_job_is_removed(database: Database) -> None:
    stored = add_job(database, "j")
    with database.transaction() as session:
        jobs.mark_deleting(session, stored.uid)

    with (
        database.transaction() as session,
        pytest.raises(AlreadyExistsError, match="it is being deleted"),
    ):
        jobs.insert_many(session, [(uuid4(), make_job("j"))])

    with database.transaction() as session:
        history.retire(session, stored)
    assert add_job(database, "j").uid != stored.uid


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(job=models(Job))
def test_every_job_comes_back_as_it_was_stored(database: Database, job: Job) -> None:
    uid = uuid4()
    meta = ObjectMeta(
        name=str(uid),
        namespace="default",
        labels=job.metadata.labels,
        annotations=job.metadata.annotations,
    )
    with database.transaction() as session:
        jobs.insert_many(session, [(uid, job.model_copy(update={"metadata": meta}))])

    found = read_job(database, uid)

    wanted = as_numbers(to_json(job.spec))
    assert as_numbers(to_json(found.job.spec)) == wanted
    assert (found.job.metadata.labels or {}) == (job.metadata.labels or {})
    assert (found.job.metadata.annotations or {}) == (job.metadata.annotations or {})
    with database.transaction() as session:
        history.retire(session, found)
        assert as_numbers(to_json(history.job(session, uid=uid).spec)) == wanted


def test_a_job_is_found_by_name_and_by_uid(database: Database) -> None:
    stored = add_job(database, "j")

    with database.transaction() as session:
        assert jobs.get(session, Key("default", "j")) == stored
        assert jobs.get_by_uid(session, stored.uid) == stored
        [(uid, document)] = jobs.documents(session, None).items()
        assert (uid, Job.model_validate(document)) == (str(stored.uid), stored.job)
        assert jobs.documents(session, [str(uuid4())]) == {}
        with pytest.raises(NotFoundError, match="default/other does not exist"):
            jobs.get(session, Key("default", "other"))
        with pytest.raises(NotFoundError):
            jobs.get_by_uid(session, uuid4())


def test_pages_follow_each_other_without_gaps_or_repeats(database: Database) -> None:
    with database.transaction() as session:
        jobs.insert_many(
            session,
            [(uuid4(), make_job(f"a{n}", queue="q")) for n in range(5)]
            + [(uuid4(), make_job(f"b{n}")) for n in range(5)],
        )
    seen: list[str] = []
    after = None
    with database.transaction() as session:
        while page := jobs.page(session, after=after, limit=3):
            seen += [one.key.name for one in page]
            after = Place(page[-1].created_at, page[-1].uid)
        of_queue = jobs.page(session, queue="q", limit=9)
        elsewhere = jobs.page(session, namespace="other", limit=9)
        waiting = jobs.page(session, phases=["Pending"], limit=99)
        done = jobs.page(session, phases=["Completed", "Failed"], limit=99)

    assert sorted(seen) == sorted({*seen})
    assert len(seen) == 10
    assert {one.key.name for one in of_queue} == {f"a{n}" for n in range(5)}
    assert (len(elsewhere), len(waiting), len(done)) == (0, 10, 0)


def test_what_a_pass_decided_is_stored_once_and_told(database: Database) -> None:
    stored = add_job(database)
    cursor = here(database)
    status = JobStatus(state=JobState(phase="Running"), running=1)
    started = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    version = record(
        database, stored, status=status, counters={"evictions": 2}, started_at=started
    )

    found = read_job(database, stored.uid)
    assert (found.version, version) == (2, 2)
    assert (found.job.status, found.counters) == (status, {"evictions": 2})
    assert found.started_at == started
    assert news(database, cursor) == [("MODIFIED", 2)]
    assert record(database, found) == 2, "nothing changed"
    assert news(database, cursor) == [("MODIFIED", 2)]


@pytest.mark.parametrize("changed", [True, False], ids=["with news", "without news"])
def test_a_pass_that_read_an_older_job_records_nothing(
    database: Database, *, changed: bool
) -> None:
    stale = add_job(database)
    record(database, stale, status=JobStatus(running=1))
    status = JobStatus(running=2) if changed else stale.job.status

    with pytest.raises(ConflictError, match="default/j changed"):
        record(database, stale, status=status)

    assert read_job(database, stale.uid).job.status.running == 1


def test_a_finished_phase_and_its_time_go_together(database: Database) -> None:
    stored = add_job(database)
    done = JobStatus(state=JobState(phase="Completed"))

    with pytest.raises(Exception, match="job_finished_at_check"):
        record(database, stored, status=done)

    record(database, stored, status=done, finished_at=datetime.now(UTC))
    with database.transaction() as session:
        assert not jobs.exists_live_in_queue(session, "default")


def test_deleting_twice_is_deleting_once(database: Database) -> None:
    stored = add_job(database)
    forget_work(database)
    cursor = here(database)

    with database.transaction() as session:
        first = jobs.mark_deleting(session, stored.uid)
    with database.transaction() as session:
        second = jobs.mark_deleting(session, stored.uid)

    assert first == second
    assert first.deleting_at is not None
    assert first.job.metadata.deletion_timestamp is not None
    assert news(database, cursor) == [("MODIFIED", 2)]
    assert due(database) == {str(stored.uid)}
    with database.transaction() as session, pytest.raises(NotFoundError):
        jobs.mark_deleting(session, uuid4())


def test_a_new_spec_raises_the_generation_and_new_labels_do_not(database: Database) -> None:
    stored = add_job(database)
    labelled = make_job("j").model_copy(
        update={"metadata": ObjectMeta(name="j", namespace="default", labels={"a": "b"})}
    )

    with database.transaction() as session:
        second = jobs.update_spec(session, stored, labelled)
    with database.transaction() as session:
        third = jobs.update_spec(session, second, make_job("j", make_task(replicas=5)))

    assert (second.version, second.job.metadata.generation) == (2, 1)
    assert second.job.metadata.labels == {"a": "b"}
    assert (third.version, third.job.metadata.generation) == (3, 2)
    assert third.job.metadata.labels is None
    with database.transaction() as session, pytest.raises(ConflictError):
        jobs.update_spec(session, stored, labelled)


def test_a_job_that_moved_to_another_queue_is_found_there(database: Database) -> None:
    stored = add_job(database)

    with database.transaction() as session:
        jobs.update_spec(session, stored, make_job("j", queue="other"))

    with database.transaction() as session:
        assert [one.uid for one in jobs.page(session, queue="other", limit=9)] == [stored.uid]
        assert jobs.exists_live_in_queue(session, "other")
        assert not jobs.exists_live_in_queue(session, "default")


def test_commands_are_kept_in_order_until_they_are_carried_out(database: Database) -> None:
    stored = add_job(database)
    asked = [
        Command(0, JobAction.ABORT_JOB, reason="r", message="m"),
        Command(0, JobAction.RESUME_JOB),
        Command(0, JobAction.ABORT_JOB),
        Command(0, JobAction.RESTART_POD, task="t", index=3),
    ]
    for command in asked:
        with database.transaction() as session:
            commands.ask(session, stored.uid, command)

    with database.transaction() as session:
        found = commands.of_job(session, stored.uid)
        commands.forget(session, [one.id for one in found[:2]])
        left = commands.of_job(session, stored.uid)
        commands.forget(session, [])

    assert [(one.action, one.task, one.index, one.reason, one.message) for one in found] == [
        (one.action, one.task, one.index, one.reason, one.message) for one in asked
    ]
    assert left == found[2:]
    with database.transaction() as session, pytest.raises(NotFoundError):
        commands.ask(session, uuid4(), asked[0])


def test_a_command_ends_a_rest_that_changes_of_pods_do_not(database: Database) -> None:
    stored = add_job(database)
    [claimed] = claim(database)
    with database.transaction() as session:
        work.fail(session, claimed, backoff=timedelta(hours=1))
    with database.transaction() as session:
        work.wake(session, jobs.KIND, str(stored.uid))
    assert due(database) == set()

    with database.transaction() as session:
        commands.ask(session, stored.uid, Command(0, JobAction.ABORT_JOB))

    assert due(database) == {str(stored.uid)}


def test_a_command_given_while_its_job_is_removed_finds_it_gone(database: Database) -> None:
    stored = add_job(database)
    failed: list[Exception] = []

    def ask() -> None:
        try:
            with database.transaction() as session:
                commands.ask(session, stored.uid, Command(0, JobAction.ABORT_JOB))
        except NotFoundError as error:
            failed.append(error)

    with database.transaction() as session:
        history.retire(session, stored)
        asking = threading.Thread(target=ask)
        asking.start()
        wait_for_waiting(database)
    asking.join()

    assert len(failed) == 1


def test_why_an_act_was_refused_is_noted_without_a_new_version(database: Database) -> None:
    stored = add_job(database)
    why = {"reason": "Quota", "message": "no room"}
    cursor = here(database)

    for wait in (why, why, None):
        with database.transaction() as session:
            jobs.set_wait(session, stored.uid, wait)
        assert read_job(database, stored.uid).wait == wait

    assert read_job(database, stored.uid).version == stored.version
    assert news(database, cursor) == []

"""What JobService tells of jobs that exist and of jobs that were removed."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest
from sqlalchemy import text

from hekla.domain.names import Key
from hekla.domain.phases import JobAction, JobPhase
from hekla.rpc.admission import Admission
from hekla.store import jobs
from hekla.store.database import Database
from hekla.v1 import job_pb2, job_service_pb2 as messages
from services.controller.job_calls import JobCalls
from tests.support.controller_scene import SOON, Driver, Scene, message, refused, unschedulable
from tests.support.factories import make_job as make_admitted
from tests.support.objects import make_job, make_task
from tests.support.store import add_job

Code = grpc.StatusCode
NOBODY = str(UUID(int=7))


def get(served: Scene, **named: str) -> job_pb2.Job:
    return served.jobs.GetJob(messages.GetJobRequest(**named), timeout=SOON).job


def pages(served: Scene, **asked: Any) -> Iterator[list[str]]:
    """Names, a page at a time."""
    token = ""
    while True:
        request = messages.ListJobsRequest(page_token=token, **asked)
        answer = served.jobs.ListJobs(request, timeout=SOON)
        yield [job.metadata.name for job in answer.jobs]
        token = answer.next_page_token
        if not token:
            return


def listed(served: Scene, **asked: Any) -> list[str]:
    return [name for page in pages(served, **asked) for name in page]


def insert(database: Database, *names: str, namespace: str = "default", **spec: Any) -> None:
    """Jobs as they are stored, without anybody having been asked."""
    made = []
    for name in names:
        job = make_admitted(name=name, **spec)
        meta = job.metadata.model_copy(update={"namespace": namespace})
        made.append((uuid4(), job.model_copy(update={"metadata": meta})))
    with database.transaction() as session:
        jobs.insert_many(session, made)


# GetJob.


def test_a_job_is_found_by_name_and_by_uid(served: Scene) -> None:
    made = served.create(make_job("j"))

    assert get(served, name="j") == made
    assert get(served, name="j", namespace="default") == made
    assert get(served, uid=made.metadata.uid) == made
    assert get(served, uid=made.metadata.uid, name="other") == made


def test_a_removed_job_is_found_by_uid_alone(served: Scene, driver: Driver) -> None:
    made = served.create(make_job("j"))
    served.delete(made)
    driver.look(made.metadata.uid)

    found = get(served, uid=made.metadata.uid)

    assert found.metadata.name == "j"
    assert found.metadata.deletion_timestamp
    with refused(Code.NOT_FOUND, "default/j"):
        get(served, name="j")


@pytest.mark.parametrize(
    "named", [{"name": "j"}, {"uid": NOBODY}, {"uid": NOBODY, "name": "j"}]
)
def test_a_job_that_never_was_is_not_found(served: Scene, named: dict[str, str]) -> None:
    with refused(Code.NOT_FOUND):
        get(served, **named)


@pytest.mark.parametrize(
    ("named", "word"),
    [
        ({}, "name: is required"),
        ({"uid": "7"}, "uid: must be a uid"),
        ({"name": "a\0b"}, "name: must be a text without NUL"),
        ({"name": "j", "namespace": "\0"}, "namespace: must be a text without NUL"),
        ({"name": "x" * 2000}, "name: must be no more than"),
    ],
)
def test_a_question_that_names_nothing_is_refused(
    served: Scene, named: dict[str, str], word: str
) -> None:
    with refused(Code.INVALID_ARGUMENT, word):
        get(served, **named)


# ListJobs.


def test_pages_hold_every_job_once_though_many_came_at_one_moment(
    served: Scene, database: Database
) -> None:
    names = [f"j{number}" for number in range(7)]
    insert(database, *names)
    with database.transaction() as session:
        session.execute(text("update job set created_at = '2026-01-01'"))

    found = list(pages(served, page_size=3))

    assert [len(page) for page in found] == [3, 3, 1]
    assert sorted(name for page in found for name in page) == names


def test_a_page_that_is_just_full_is_the_last(served: Scene, database: Database) -> None:
    insert(database, "a", "b")

    assert list(pages(served, page_size=2)) == [["a", "b"]]


def test_jobs_come_oldest_first_and_new_ones_at_the_end(
    served: Scene, database: Database
) -> None:
    insert(database, "b", "c")
    found = pages(served, page_size=1)
    first = next(found)

    insert(database, "a")

    assert [*first, *(name for page in found for name in page)] == ["b", "c", "a"]


def test_jobs_are_chosen_by_namespace_queue_phase_and_label(
    served: Scene, database: Database
) -> None:
    insert(database, "plain")
    insert(database, "elsewhere", namespace="other")
    insert(database, "queued", queue="gold")
    made = served.create(make_job("running"))
    labelled = message(make_job("labelled"))
    labelled.metadata.labels["tier"] = "web"
    served.jobs.CreateJob(messages.CreateJobRequest(job=labelled), timeout=SOON)
    driver = Driver(database)
    driver.start(made.metadata.uid)

    assert listed(served, namespace="other") == ["elsewhere"]
    assert listed(served, queue="gold") == ["queued"]
    assert listed(served, phases=["Running"]) == ["running"]
    assert listed(served, phases=["Running", "Pending"], queue="default") == [
        "plain",
        "elsewhere",
        "running",
        "labelled",
    ]
    assert listed(served, label_selector="tier in (web, db)") == ["labelled"]
    assert listed(served, label_selector="!tier", queue="gold") == ["queued"]
    assert listed(served, namespace="nowhere") == []


def test_labels_choose_over_pages_too(served: Scene, database: Database) -> None:
    insert(database, *[f"j{number:02}" for number in range(12)])
    with database.transaction() as session:
        session.execute(
            text("""update job set labels = '{"odd": ""}' where name ~ '[13579]$'""")
        )

    found = list(pages(served, page_size=4, label_selector="odd"))

    assert found == [["j01", "j03", "j05", "j07"], ["j09", "j11"]]


def test_a_call_reads_so_many_jobs_and_no_more_to_find_a_rare_label(
    database: Database,
) -> None:
    insert(database, *[f"j{number:02}" for number in range(20)])
    with database.transaction() as session:
        session.execute(text("""update job set labels = '{"rare": ""}' where name = 'j13'"""))
    calls = JobCalls(database, Admission("127.0.0.1:1"), most_scanned=6)

    found, after = [], None
    for _ in range(4):
        page = calls.page(
            namespace="", queue="", phases=(), labels="rare", after=after, limit=4
        )
        found.append([job.metadata.name for job in page.jobs])
        after = page.end

    assert found == [[], [], ["j13"], []]
    assert after is None


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({"page_size": -1}, "page_size"),
        ({"page_token": "no"}, "page_token"),
        ({"page_token": "ä"}, "page_token"),
        ({"page_token": base64.urlsafe_b64encode(b"0000-00-00 x").decode()}, "page_token"),
        ({"page_token": base64.urlsafe_b64encode(b"\xff\0").decode()}, "page_token"),
        ({"label_selector": "a in ("}, ""),
        ({"label_selector": "\0"}, ""),
        ({"phases": ["Done"]}, "phases: must be of Pending"),
        ({"phases": ["Running", "\0"]}, "phases"),
        ({"queue": "a\0"}, "queue"),
        ({"namespace": "\0"}, "namespace"),
    ],
)
def test_a_list_that_makes_no_sense_is_refused(
    served: Scene, asked: dict[str, Any], word: str
) -> None:
    with refused(Code.INVALID_ARGUMENT, word):
        served.jobs.ListJobs(messages.ListJobsRequest(**asked), timeout=SOON)


def test_a_page_has_bounds_however_much_is_asked_for(served: Scene, database: Database) -> None:
    insert(database, *[f"j{number}" for number in range(501)])

    answer = served.jobs.ListJobs(messages.ListJobsRequest(page_size=2**31 - 1), timeout=SOON)

    assert len(answer.jobs) == 500
    assert answer.next_page_token


# Attempts, pods, events.


def attempts(served: Scene, **asked: Any) -> messages.ListAttemptsResponse:
    return served.jobs.ListAttempts(messages.ListAttemptsRequest(**asked), timeout=SOON)


def a_restarted_job(served: Scene, driver: Driver) -> str:
    """A job of two pods in their second run; its uid."""
    made = served.create(make_job("j", make_task("a", 2)))
    uid = made.metadata.uid
    driver.start(uid)
    driver.ask(uid, JobAction.RESTART_JOB)
    driver.look(uid)
    driver.stop_pods(uid)
    driver.start(uid)
    return uid


def test_every_life_of_every_pod_is_an_attempt(served: Scene, driver: Driver) -> None:
    uid = a_restarted_job(served, driver)

    answer = attempts(served, name="j")

    assert answer.job_uid == uid
    assert [(one.task, one.index, one.run, one.outcome) for one in answer.attempts] == [
        ("a", 0, 0, "Removed"),
        ("a", 1, 0, "Removed"),
        ("a", 0, 1, ""),
        ("a", 1, 1, ""),
    ]
    assert [one.phase for one in answer.attempts[2:]] == ["Running", "Running"]
    assert all(one.node == "n" and one.pod_uid for one in answer.attempts)


def test_attempts_come_in_pages_while_the_job_is_there_and_afterwards(
    served: Scene, driver: Driver
) -> None:
    def all_of(**asked: str) -> list[str]:
        found, token = [], ""
        for _ in range(10):
            answer = attempts(served, page_size=3, page_token=token, **asked)
            assert len(answer.attempts) <= 3
            found += [one.uid for one in answer.attempts]
            token = answer.next_page_token
            if not token:
                return found
        raise AssertionError("the pages do not end")

    uid = a_restarted_job(served, driver)
    live = all_of(name="j")
    driver.ask(uid, JobAction.ABORT_JOB)
    with served.database.transaction() as session:
        jobs.mark_deleting(session, UUID(uid))
    driver.look(uid)
    driver.stop_pods(uid)

    assert len(live) == len(set(live)) == 4
    assert all_of(uid=uid) == live
    assert all_of(name="j") == live, "the newest job of that name"


def test_attempts_of_a_removed_job_say_what_they_said(served: Scene, driver: Driver) -> None:
    made = served.create(make_job("j"))
    driver.start(made.metadata.uid)
    driver.end(made.metadata.uid, 3)
    [before] = attempts(served, name="j").attempts
    served.delete(made)
    driver.look(made.metadata.uid)
    driver.stop_pods(made.metadata.uid)

    [after] = attempts(served, uid=made.metadata.uid).attempts

    assert before.outcome == "Failed"
    assert dict(before.exit_codes) == {"c": 3}
    assert before.finished_at
    before.reason = after.reason = ""
    assert after == before


def test_a_planned_pod_is_told_from_a_pending_one(served: Scene, driver: Driver) -> None:
    made = served.create(make_job("j"))
    driver.pods.delay_creates = True
    driver.look(made.metadata.uid)
    driver.admit(made.metadata.uid)
    driver.look(made.metadata.uid)
    [planned] = attempts(served, name="j").attempts
    driver.pods.delay_creates = False
    driver.pods.land_late_creates()
    driver.observe()

    [pending] = attempts(served, name="j").attempts

    assert (planned.phase, planned.pod_uid) == ("Planned", "")
    assert pending.phase == "Pending"
    assert pending.uid == planned.uid


def test_attempts_of_no_job_are_not_found(served: Scene) -> None:
    with refused(Code.NOT_FOUND, "default/j"):
        attempts(served, name="j")
    with refused(Code.NOT_FOUND, NOBODY):
        attempts(served, uid=NOBODY)


def pods(served: Scene, **asked: Any) -> list[tuple[str, str, str]]:
    answer = served.jobs.ListPods(messages.ListPodsRequest(**asked), timeout=SOON)
    return [(one.namespace, one.job, one.attempt.pod_name) for one in answer.pods]


def test_pods_are_those_that_are_there(served: Scene, driver: Driver) -> None:
    uid = a_restarted_job(served, driver)
    served.create(make_job("idle"))

    assert pods(served) == [("default", "j", "j-a-0"), ("default", "j", "j-a-1")]
    assert pods(served, job="j") == pods(served, namespace="default") == pods(served)
    assert pods(served, job="idle") == pods(served, namespace="other") == []
    with refused(Code.NOT_FOUND, "other/j"):
        pods(served, job="j", namespace="other")
    driver.ask(uid, JobAction.ABORT_JOB)
    driver.look(uid)
    assert len(pods(served)) == 2, "they are on their way out"
    driver.stop_pods(uid)
    assert pods(served) == []


def test_the_name_of_a_pods_job_may_look_like_a_task(served: Scene, driver: Driver) -> None:
    made = served.create(make_job("a-0-b", make_task("b-1", 1)))
    driver.start(made.metadata.uid)

    assert pods(served) == [("default", "a-0-b", "a-0-b-b-1-0")]


def reasons(served: Scene, **asked: Any) -> list[str]:
    answer = served.jobs.ListJobEvents(messages.ListJobEventsRequest(**asked), timeout=SOON)
    assert all(event.at for event in answer.events)
    return [event.reason for event in answer.events]


def test_events_tell_what_happened_also_of_a_removed_job(served: Scene, driver: Driver) -> None:
    made = served.create(make_job("j"))
    uid = made.metadata.uid
    driver.start(uid)
    driver.end(uid)
    live = reasons(served, name="j")
    served.delete(made)
    driver.look(uid)
    driver.stop_pods(uid)

    assert live == ["Running", "Completed"]
    assert reasons(served, uid=uid) == reasons(served, name="j") == live
    with refused(Code.NOT_FOUND):
        reasons(served, name="other")


def test_a_command_is_an_event_with_the_words_of_who_gave_it(
    served: Scene, driver: Driver
) -> None:
    made = served.create(make_job("j"))
    served.command(made, "AbortJob", message="no budget")
    driver.look(made.metadata.uid)

    answer = served.jobs.ListJobEvents(messages.ListJobEventsRequest(name="j"), timeout=SOON)

    assert ("CommandIssued", "AbortJob: no budget") in {
        (event.reason, event.message) for event in answer.events
    }
    assert get(served, name="j").status.state.message == "AbortJob: no budget"


def test_of_two_jobs_of_one_name_the_newest_is_told_of(
    served: Scene, database: Database
) -> None:
    driver = Driver(database)
    old = add_job(database, "j")
    with database.transaction() as session:
        jobs.mark_deleting(session, old.uid)
    driver.look(old.uid)
    new = add_job(database, "j")

    assert attempts(served, name="j").job_uid == str(new.uid)
    assert attempts(served, uid=str(old.uid)).job_uid == str(old.uid)
    with database.transaction() as session:
        assert jobs.get(session, Key("default", "j")).uid == new.uid


def test_a_job_that_waits_says_why(served: Scene, driver: Driver) -> None:
    made = served.create(make_job("j", make_task("t", 1)))
    uid = made.metadata.uid
    driver.look(uid)
    waiting = get(served, name="j").status.state
    driver.report(uid, unschedulable("0/3 nodes have 4 more CPU"))
    driver.look(uid)
    driver.look(uid)
    unplaced = get(served, name="j").status.state

    assert (waiting.phase, waiting.reason) == (JobPhase.PENDING, "NotInqueue")
    assert (unplaced.reason, unplaced.message) == ("NotEnough", "0/3 nodes have 4 more CPU")


def test_jobs_are_chosen_by_when_they_came_and_ended(served: Scene, driver: Driver) -> None:
    names = ("a", "b", "c")
    made = {name: served.create(make_job(name)) for name in names}
    with driver.database.transaction() as session:
        for hour, name in enumerate(names):
            session.execute(
                text("update job set created_at = cast(:at as timestamptz) where name = :name"),
                {"at": f"2026-01-0{hour + 1}T00:00:00Z", "name": name},
            )
    driver.start(made["b"].metadata.uid)
    driver.end(made["b"].metadata.uid)

    def found(**asked: Any) -> list[str]:
        answer = served.jobs.ListJobs(messages.ListJobsRequest(**asked), timeout=SOON)
        return [job.metadata.name for job in answer.jobs]

    assert found(created_after="2026-01-02T00:00:00Z") == ["b", "c"]
    assert found(created_before="2026-01-02T00:00:00Z") == ["a"]
    assert found(finished_after="2026-01-01T00:00:00Z") == ["b"]
    assert found(finished_before="2026-01-01T00:00:00Z") == []
    with refused(Code.INVALID_ARGUMENT, "created_after: must be an instant"):
        found(created_after="yesterday")


def test_attempts_and_events_are_chosen_also_of_a_job_that_was_removed(
    served: Scene, driver: Driver
) -> None:
    job = make_job("j", make_task("w", 2), make_task("m", 1))
    uid = served.create(job).metadata.uid
    driver.start(uid)
    driver.pods.end("j-w-0", 1)
    driver.observe()
    driver.look(uid)

    def chosen(**asked: Any) -> list[str]:
        request = messages.ListAttemptsRequest(uid=uid, **asked)
        answer = served.jobs.ListAttempts(request, timeout=SOON)
        return sorted(one.pod_name for one in answer.attempts)

    def page_of_pods(token: str) -> messages.ListPodsResponse:
        request = messages.ListPodsRequest(job="j", page_size=2, page_token=token)
        return served.jobs.ListPods(request, timeout=SOON)

    assert chosen(task="w") == ["j-w-0", "j-w-1"]
    assert chosen(outcomes=["Failed"]) == ["j-w-0"]
    first = page_of_pods("")
    rest = page_of_pods(first.next_page_token)
    names = [one.attempt.pod_name for page in (first, rest) for one in page.pods]
    assert (names, rest.next_page_token) == (["j-m-0", "j-w-0", "j-w-1"], "")
    assert len(pods(served, job="j", phases=["Running"])) == 2
    assert len(pods(served, job="j", task="m", phases=["Running", "Failed"])) == 1
    everything = reasons(served, uid=uid)
    assert reasons(served, uid=uid, page_size=1) == everything[:1]
    assert reasons(served, uid=uid, type="Warning") == [
        one for one in everything if one in {"Failed"}
    ]

    served.delete(get(served, uid=uid))
    driver.look(uid)
    driver.stop_pods(uid)
    assert chosen(task="w") == ["j-w-0", "j-w-1"]
    assert chosen(outcomes=["Failed"]) == ["j-w-0"]

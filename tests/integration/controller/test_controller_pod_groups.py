"""PodGroupService: gangs without jobs, and the scheduler's word on all of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any
from uuid import UUID

import grpc
import pytest

from hekla.api.convert import to_message
from hekla.api.meta import ObjectMeta
from hekla.api.pod_group import PodGroup, PodGroupSpec, PodGroupStatus
from hekla.domain.names import pod_group_name
from hekla.store.database import Database
from hekla.v1 import (
    meta_pb2,
    pod_group_pb2,
    pod_group_service_pb2 as messages,
    queue_pb2,
    queue_service_pb2,
)
from tests.support.controller_scene import SOON, Driver, Scene, lead, refused, until
from tests.support.store import due, forget_work, value

Code = grpc.StatusCode
NOBODY = str(UUID(int=7))


def message(name: str = "g", **spec: Any) -> pod_group_pb2.PodGroup:
    group = PodGroup(
        metadata=ObjectMeta(name=name, namespace="default"), spec=PodGroupSpec(**spec)
    )
    return to_message(group, pod_group_pb2.PodGroup)


def create(
    served: Scene, name: str = "g", request_id: str = "", **spec: Any
) -> pod_group_pb2.PodGroup:
    request = messages.CreatePodGroupRequest(
        pod_group=message(name, **spec), request_id=request_id
    )
    return served.groups.CreatePodGroup(request, timeout=SOON).pod_group


def get(served: Scene, name: str = "g", namespace: str = "") -> pod_group_pb2.PodGroup:
    request = messages.GetPodGroupRequest(name=name, namespace=namespace)
    return served.groups.GetPodGroup(request, timeout=SOON).pod_group


def delete(served: Scene, name: str = "g", **more: str) -> None:
    request = messages.DeletePodGroupRequest(name=name, **more)
    served.groups.DeletePodGroup(request, timeout=SOON)


def report(served: Scene, epoch: int, **phases: str) -> list[str]:
    """Report phases of groups by uid; the uids of those that are gone."""
    return report_all(served, epoch, [(uid, {"phase": phase}) for uid, phase in phases.items()])


def report_all(served: Scene, epoch: int, said: list[tuple[str, dict[str, Any]]]) -> list[str]:
    reports = [
        messages.SchedulingReport(
            uid=uid, status=to_message(PodGroupStatus(**status), pod_group_pb2.PodGroupStatus)
        )
        for uid, status in said
    ]
    request = messages.ReportSchedulingRequest(epoch=epoch, reports=reports)
    return list(served.groups.ReportScheduling(request, timeout=SOON).unknown_uids)


def listed(served: Scene, token: str = "", **asked: Any) -> list[list[str]]:
    """Names, a page at a time."""
    found = []
    while True:
        request = messages.ListPodGroupsRequest(page_token=token, **asked)
        answer = served.groups.ListPodGroups(request, timeout=SOON)
        found.append([group.metadata.name for group in answer.pod_groups])
        token = answer.next_page_token
        if not token:
            return found


@pytest.fixture
def epoch(database: Database) -> int:
    """Somebody leads."""
    return lead(database)


# Groups.


def test_a_group_waits_for_the_scheduler_once_it_is_made(served: Scene) -> None:
    made = create(served, min_member=3)

    assert made.status.phase == "Pending"
    assert made.spec.min_member == 3
    assert made.spec.queue == "default"
    assert get(served) == made


def test_a_group_that_makes_no_sense_is_refused(served: Scene) -> None:
    with refused(Code.INVALID_ARGUMENT, "spec.minMember"):
        create(served, min_member=-1)
    with refused(Code.INVALID_ARGUMENT, "metadata.name"):
        create(served, "")
    with refused(Code.INVALID_ARGUMENT, "spec.queue"):
        create(served, queue="q" * 3000)
    with refused(Code.INVALID_ARGUMENT, "pod_group: is required"):
        served.groups.CreatePodGroup(messages.CreatePodGroupRequest(), timeout=SOON)

    assert listed(served) == [[]]


def test_a_groups_name_may_be_made_for_it(served: Scene) -> None:
    group = message("")
    group.metadata.generate_name = "gang-"
    request = messages.CreatePodGroupRequest(pod_group=group, request_id="once")

    names = {
        served.groups.CreatePodGroup(request, timeout=SOON).pod_group.metadata.name
        for _ in range(2)
    }

    [name] = names
    assert name.startswith("gang-")


def test_the_same_request_makes_one_group(served: Scene) -> None:
    with ThreadPoolExecutor(8) as many:
        calls = [many.submit(create, served, "g", "once") for _ in range(8)]
        uids = {call.result().metadata.uid for call in calls}

    assert len(uids) == 1
    with refused(Code.INVALID_ARGUMENT, "'once'"):
        create(served, "other", "once")
    with refused(Code.ALREADY_EXISTS, "default/g"):
        create(served, "g")
    delete(served, "g")
    with refused(Code.NOT_FOUND, "any more"):
        create(served, "g", "once")


def test_the_group_of_a_job_goes_with_its_job_alone(served: Scene, driver: Driver) -> None:
    made = served.create()
    driver.look(made.metadata.uid)
    name = pod_group_name(made.metadata.name, made.metadata.uid)
    [owner] = get(served, name).metadata.owner_references

    with refused(Code.FAILED_PRECONDITION, "delete the job"):
        delete(served, name)

    assert (owner.kind, owner.name) == ("Job", made.metadata.name)
    served.delete(made)
    driver.look(made.metadata.uid)
    with refused(Code.NOT_FOUND):
        get(served, name)


def test_a_group_is_deleted_by_name_and_if_it_is_named_uid(served: Scene) -> None:
    made = create(served)

    with refused(Code.NOT_FOUND, NOBODY):
        delete(served, uid=NOBODY)
    with refused(Code.INVALID_ARGUMENT, "uid"):
        delete(served, uid="7")
    delete(served, uid=made.metadata.uid, request_id="once")
    delete(served, uid=made.metadata.uid, request_id="once")
    with refused(Code.NOT_FOUND, "default/g"):
        delete(served)


def test_groups_come_in_pages_oldest_first(served: Scene) -> None:
    for name in ("c", "b", "a"):
        create(served, name)
    gold = queue_pb2.Queue(metadata=meta_pb2.ObjectMeta(name="gold"))
    served.queues.CreateQueue(queue_service_pb2.CreateQueueRequest(queue=gold), timeout=SOON)
    create(served, "d", queue="gold")

    assert listed(served, page_size=2) == [["c", "b"], ["a", "d"]]
    assert listed(served, queue="gold") == [["d"]]
    assert listed(served, namespace="other") == [[]]
    assert listed(served, namespace="default", page_size=3) == [["c", "b", "a"], ["d"]]


@pytest.mark.parametrize(
    "asked",
    [
        {"page_size": -1},
        {"token": "ä"},
        {"label_selector": "a in ("},
        {"queue": "\0"},
        {"namespace": "\0"},
    ],
)
def test_a_list_of_groups_that_makes_no_sense_is_refused(
    served: Scene, asked: dict[str, Any]
) -> None:
    with refused(Code.INVALID_ARGUMENT):
        listed(served, **asked)


def test_a_group_that_never_was_is_not_found(served: Scene) -> None:
    with refused(Code.NOT_FOUND, "default/g"):
        get(served)
    for name in ("", "g\0"):
        with refused(Code.INVALID_ARGUMENT, "name"):
            get(served, name)


def test_a_watch_tells_what_becomes_of_groups(served: Scene, epoch: int) -> None:
    cursor = served.groups.ListPodGroups(messages.ListPodGroupsRequest(), timeout=SOON).cursor
    request = messages.WatchPodGroupsRequest(namespace="default", cursor=cursor)
    stream = served.groups.WatchPodGroups(request, timeout=SOON)

    made = create(served)
    report(served, epoch, **{made.metadata.uid: "Inqueue"})
    delete(served)

    seen = until(stream, lambda one: one.type == "DELETED")
    assert seen[-1].pod_group.status.phase == "Inqueue"
    versions = [
        int(one.pod_group.metadata.resource_version) for one in seen if one.type != "BOOKMARK"
    ]
    assert versions == sorted(set(versions))
    stream.cancel()


def test_what_came_together_comes_in_one_message_to_who_asks_for_it(
    served: Scene, epoch: int
) -> None:
    first = served.groups.WatchPodGroups(messages.WatchPodGroupsRequest(), timeout=SOON)
    until(first, lambda one: one.type == "BOOKMARK")
    uids = [create(served, f"g{number}").metadata.uid for number in range(5)]
    # Once they are told of: what a hub reads of an object in one step it tells as one.
    until(first, lambda one: one.pod_group.metadata.uid == uids[-1])
    first.cancel()
    cursor = served.groups.ListPodGroups(messages.ListPodGroupsRequest(), timeout=SOON).cursor
    watches = [
        served.groups.WatchPodGroups(
            messages.WatchPodGroupsRequest(cursor=cursor, most=most, namespace=namespace),
            timeout=SOON,
        )
        for most, namespace in ((3, ""), (3, "default"), (0, ""))
    ]
    for watch in watches:
        assert next(watch).type == "BOOKMARK", "it has begun"

    report(served, epoch, **dict.fromkeys(uids, "Inqueue"))

    for watch, sizes in zip(watches, ([3, 2], [3, 2], [1] * 5), strict=True):
        told = list(islice(watch, len(sizes)))
        assert [1 + len(one.further) for one in told] == sizes
        further = [each for one in told for each in one.further]
        groups = [it.pod_group for it in told] + [it.pod_group for it in further]
        assert {group.metadata.uid for group in groups} == set(uids)
        assert {it.type for it in told} | {it.type for it in further} <= {"MODIFIED"}
        assert told[-1].cursor not in {cursor, *(one.cursor for one in told[:-1])}
        watch.cancel()
    with refused(Code.INVALID_ARGUMENT, "most"):
        next(served.groups.WatchPodGroups(messages.WatchPodGroupsRequest(most=-1)))


# Reports.


def test_the_schedulers_word_is_the_groups_status(served: Scene, epoch: int) -> None:
    made = create(served)
    conditions = [
        {"type": "Unschedulable", "status": "True", "reason": "NotEnough", "message": "4 CPU"}
    ]
    status = {"phase": "Inqueue", "running": 2, "conditions": conditions}

    report_all(served, epoch, [(made.metadata.uid, status)])

    shown = get(served).status
    assert (shown.phase, shown.running) == ("Inqueue", 2)
    assert shown.conditions[0].message == "4 CPU"
    assert int(get(served).metadata.resource_version) == 2


def test_the_same_word_twice_is_no_change(served: Scene, epoch: int) -> None:
    made = create(served)
    for _ in range(2):
        report(served, epoch, **{made.metadata.uid: "Inqueue"})

    assert get(served).metadata.resource_version == "2"


def test_a_scheduler_that_leads_no_more_is_not_heard(
    served: Scene, database: Database, epoch: int
) -> None:
    made = create(served)
    newer = lead(database)
    report(served, newer, **{made.metadata.uid: "Running"})

    for other in (epoch, 0, -1, newer + 1, 2**63 - 1, -(2**63)):
        with refused(Code.FAILED_PRECONDITION, "over"):
            report(served, other, **{made.metadata.uid: "Pending"})

    assert get(served).status.phase == "Running"


def test_nobody_is_heard_while_nobody_leads(served: Scene) -> None:
    with refused(Code.FAILED_PRECONDITION):
        report(served, 1)


def test_groups_that_are_gone_are_named(served: Scene, epoch: int) -> None:
    made = create(served)

    unknown = report(served, epoch, **{NOBODY: "Running", made.metadata.uid: "Running"})

    assert unknown == [NOBODY]
    assert get(served).status.phase == "Running", "the others are heard"
    assert report(served, epoch) == []


@pytest.mark.parametrize(
    ("uid", "status", "word"),
    [
        ("", {"phase": "Running"}, "reports[0].uid: is required"),
        ("7", {"phase": "Running"}, "reports[0].uid: must be a uid"),
        (NOBODY, {"phase": "Flying"}, "phase"),
        (NOBODY, {"running": -1}, "running"),
        (NOBODY, {"conditions": [{"message": "\0"}]}, "conditions[0].message"),
    ],
)
def test_a_report_that_makes_no_sense_is_refused_whole(
    served: Scene, epoch: int, uid: str, status: dict[str, Any], word: str
) -> None:
    made = create(served)

    with refused(Code.INVALID_ARGUMENT, word):
        report_all(served, epoch, [(uid, status), (made.metadata.uid, {"phase": "Running"})])

    assert get(served).status.phase == "Pending"


def test_a_job_is_looked_at_when_its_group_is_let_in_or_held_back_and_else_not(
    served: Scene, driver: Driver, epoch: int
) -> None:
    made = served.create()
    driver.look(made.metadata.uid)
    name = pod_group_name(made.metadata.name, made.metadata.uid)
    uid = get(served, name).metadata.uid
    forget_work(served.database)

    scheduled = {"type": "Scheduled", "status": "True", "reason": "ready", "message": ""}
    against = {"type": "Unschedulable", "status": "True", "reason": "full", "message": "4 CPU"}
    for status, wakes in (
        ({"phase": "Pending", "failed": 1}, False),
        ({"phase": "Inqueue"}, True),
        ({"phase": "Inqueue", "conditions": [scheduled]}, False),
        ({"phase": "Inqueue", "conditions": [scheduled, against]}, True),
        ({"phase": "Inqueue", "conditions": [against, scheduled]}, False),
        ({"phase": "Inqueue", "conditions": [against | {"message": "5 CPU"}]}, True),
        ({"phase": "Inqueue", "conditions": [scheduled]}, True),
        ({"phase": "Running", "conditions": [scheduled], "running": 1}, False),
        ({"phase": "Unknown", "conditions": [scheduled], "running": 1}, True),
        ({"phase": "Running", "conditions": [scheduled], "running": 1}, True),
        ({"phase": "Completed", "conditions": [scheduled]}, False),
        ({"phase": "Pending", "conditions": [scheduled]}, True),
    ):
        report_all(served, epoch, [(uid, status)])
        assert due(served.database) == ({made.metadata.uid} if wakes else set()), status
        forget_work(served.database)


def test_a_report_about_many_groups_is_one_transaction(
    served: Scene, database: Database, epoch: int
) -> None:
    made = [create(served, f"g{number}").metadata.uid for number in range(20)]

    report(served, epoch, **dict.fromkeys(made, "Inqueue"))

    with database.transaction() as session:
        writers = value(
            session,
            "select count(distinct xid) from change where kind = 'pod_group' and version = 2"
            " and uid in (select uid::text from pod_group)",
        )
    assert writers == 1

"""What is told of groups: phases, conditions, messages; and only what changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from hekla.domain.phases import PodGroupPhase as Phase, PodPhase
from services.scheduler.core.groups import GroupState, PodState
from services.scheduler.core.objects import EPOCH, Group, Pod
from services.scheduler.core.reports import REWORD_AFTER, next_phase
from services.scheduler.core.session import Session
from services.scheduler.core.status import Status
from services.scheduler.framework import Enabled, Framework
from tests.support.cluster import (
    DEFAULT,
    add_gang,
    cluster_with,
    confirm,
    decide,
    node,
    report_of,
)


@pytest.mark.parametrize(
    ("before", "counts", "unschedulable", "expected"),
    [
        pytest.param(Phase.PENDING, {}, False, Phase.PENDING, id="no pods yet"),
        pytest.param(Phase.INQUEUE, {}, False, Phase.INQUEUE, id="let in, no pods yet"),
        pytest.param(
            Phase.INQUEUE, {Status.PENDING: 3}, True, Phase.INQUEUE, id="waits for room"
        ),
        pytest.param(
            Phase.INQUEUE, {Status.BINDING: 3}, False, Phase.INQUEUE, id="binds are under way"
        ),
        pytest.param(
            Phase.INQUEUE, {Status.BOUND: 2}, False, Phase.RUNNING, id="enough are bound"
        ),
        pytest.param(
            Phase.INQUEUE,
            {Status.RUNNING: 1, Status.SUCCEEDED: 1},
            False,
            Phase.RUNNING,
            id="some have ended",
        ),
        pytest.param(
            Phase.RUNNING, {Status.RELEASING: 2}, False, Phase.RUNNING, id="all are ending"
        ),
        pytest.param(
            Phase.RUNNING,
            {Status.SUCCEEDED: 1, Status.FAILED: 1},
            False,
            Phase.COMPLETED,
            id="all scheduled have ended",
        ),
        pytest.param(
            Phase.RUNNING,
            {Status.LEAVING: 2},
            False,
            Phase.COMPLETED,
            id="all have ended and are deleted",
        ),
        pytest.param(
            Phase.RUNNING,
            {Status.RUNNING: 1, Status.PENDING: 1},
            True,
            Phase.UNKNOWN,
            id="a member is lost and finds no room",
        ),
        pytest.param(
            Phase.RUNNING,
            {Status.RUNNING: 1, Status.BINDING: 1},
            False,
            Phase.RUNNING,
            id="a member is being bound anew",
        ),
        pytest.param(
            Phase.RUNNING, {Status.BOUND: 1}, True, Phase.PENDING, id="below the minimum"
        ),
        pytest.param(
            Phase.COMPLETED, {Status.PENDING: 2}, True, Phase.PENDING, id="started anew"
        ),
        pytest.param(
            Phase.RUNNING, {Status.DROPPED: 2}, True, Phase.PENDING, id="never had a node"
        ),
    ],
)
def test_phases_follow_from_members(
    before: Phase, counts: dict[Status, int], *, unschedulable: bool, expected: Phase
) -> None:
    cluster = cluster_with()
    cluster.upsert_group(Group("g", "ns", "g", min_member=2, phase=before))
    group = cluster.groups["g"]
    for status, number in counts.items():
        group.counts[status] = number
    for each in range(sum(counts.values())):
        klass, _ = cluster.classes.join(Pod("", "", ""))
        group.members[str(each)] = PodState(Pod("", "", ""), klass, Status.PENDING)
    ready = group.ready_members >= 2

    assert next_phase(group, ready=ready, unschedulable=unschedulable) is expected


def test_a_minimum_of_zero_is_not_reached_by_nobody() -> None:
    group = GroupState(Group("g", "ns", "g", min_member=0, phase=Phase.INQUEUE))

    assert next_phase(group, ready=True, unschedulable=False) is Phase.INQUEUE


def test_a_waiting_gang_says_why_in_volcanos_words() -> None:
    cluster = cluster_with(node("a", 2), node("b", 1))
    add_gang(cluster, "job", {"t": (2, {"cpu": 2})})

    decisions = decide(cluster, now=EPOCH + timedelta(hours=1))

    report = report_of(decisions, "job")
    [condition] = report.conditions
    assert condition.type == "Unschedulable"
    assert condition.status == "True"
    assert condition.reason == "NotEnoughResources"
    assert condition.transition_id == "session"
    assert condition.last_transition_time == EPOCH + timedelta(hours=1)
    assert report.phase is Phase.INQUEUE
    assert report.message == condition.message
    assert condition.message == (
        "1/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable. "
        "Origin reason is job-t-0: room for 1 of 2 such pods; "
        "1/2 nodes are available: 1 Insufficient cpu."
    )
    assert [(it.pod_uid, it.reason) for it in decisions.pod_reports] == [
        ("job-t-0", "Unschedulable"),
        ("job-t-1", "Unschedulable"),
    ]


def test_where_nothing_speaks_against_any_node_no_reason_is_given() -> None:
    """Each node takes one of the three, and there are two nodes."""
    cluster = cluster_with(node("a", 2), node("b", 2))
    add_gang(cluster, "job", {"t": (3, {"cpu": 2})})

    report = report_of(decide(cluster), "job")

    assert report.message.endswith(
        "job-t-0: room for 2 of 3 such pods; 2/2 nodes are available."
    )


def test_pods_are_told_once_that_they_wait() -> None:
    cluster = cluster_with(node("a", 1))
    pods = add_gang(cluster, "job", {"t": (2, {"cpu": 2})}, minimum=1)
    assert len(decide(cluster).pod_reports) == 2

    cluster.upsert_node(node("b", 1))
    cluster.upsert_pod(replace(pods[0], uid="more", name="job-t-2", index=2))

    assert [it.pod_uid for it in decide(cluster).pod_reports] == ["more"]


def test_a_gang_that_finds_room_says_so_and_keeps_the_old_condition() -> None:
    cluster = cluster_with(node("a", 1))
    add_gang(cluster, "job", {"t": (1, {"cpu": 2})})
    decide(cluster)
    cluster.upsert_node(node("a", 2))

    decisions = decide(cluster, now=EPOCH + timedelta(minutes=1))

    report = report_of(decisions, "job")
    assert [it.type for it in report.conditions] == ["Unschedulable", "Scheduled"]
    assert report.conditions[-1].reason == "tasks in gang are ready to be scheduled"
    assert report.message == ""

    confirm(cluster, decisions)
    assert report_of(decide(cluster), "job").phase is Phase.RUNNING

    cluster.remove_pod("job-t-0")
    gone = report_of(decide(cluster), "job")
    assert gone.phase is Phase.PENDING


def test_what_the_controller_or_users_wait_for_does_not_rest() -> None:
    cluster = cluster_with(node("a", 1))
    add_gang(cluster, "job", {"t": (1, {"cpu": 2})}, phase=Phase.PENDING)
    let_in = decide(cluster)
    assert not report_of(let_in, "job").may_rest, "it was let in, and does not fit"
    cluster.upsert_node(node("a", 2))
    fits = decide(cluster)
    assert not report_of(fits, "job").may_rest, "nothing speaks against it any more"

    confirm(cluster, fits)
    assert report_of(decide(cluster), "job").may_rest, "its pods are bound"
    [pod] = [state.pod for state in cluster.pods.values()]
    cluster.upsert_pod(replace(pod, phase=PodPhase.RUNNING))
    assert report_of(decide(cluster), "job").may_rest, "they run"
    cluster.upsert_pod(replace(pod, phase=PodPhase.SUCCEEDED))
    assert report_of(decide(cluster), "job").may_rest, "they have ended"
    cluster.remove_pod(pod.uid)
    assert not report_of(decide(cluster), "job").may_rest, "it is held back again"


def test_members_are_counted() -> None:
    cluster = cluster_with(node("a", 9))
    pods = add_gang(cluster, "job", {"t": (4, {"cpu": 1})})
    confirm(cluster, decide(cluster), phase=PodPhase.RUNNING)
    for pod, phase in zip(pods, (PodPhase.SUCCEEDED, PodPhase.FAILED), strict=False):
        cluster.upsert_pod(replace(cluster.pods[pod.uid].pod, phase=phase))

    report = report_of(decide(cluster), "job")

    assert (report.running, report.succeeded, report.failed) == (2, 1, 1)


def test_nothing_is_told_twice() -> None:
    cluster = cluster_with(node("a", 1))
    add_gang(cluster, "job", {"t": (1, {"cpu": 2})})
    add_gang(cluster, "other", {"t": (1, {"cpu": 1})})
    assert len(decide(cluster).reports) == 2

    for _ in range(3):
        assert not decide(cluster).reports


def test_mere_wording_waits_a_while() -> None:
    cluster = cluster_with(node("a", 1))
    add_gang(cluster, "job", {"t": (1, {"cpu": 2})})
    first = report_of(decide(cluster), "job")
    cluster.upsert_node(node("b", 1))

    quiet = decide(cluster, now=EPOCH + timedelta(seconds=1))
    assert not quiet.reports
    assert quiet.again_in is not None
    then = decide(cluster, now=EPOCH + timedelta(seconds=1) + quiet.again_in)

    assert quiet.again_in <= REWORD_AFTER
    assert "2 Insufficient cpu" in report_of(then, "job").message
    assert "1 Insufficient cpu" in first.message


def test_a_gang_whose_members_are_ending_is_not_called_unschedulable() -> None:
    cluster = cluster_with(node("a", 9))
    add_gang(cluster, "job", {"t": (2, {"cpu": 1})})
    confirm(cluster, decide(cluster), phase=PodPhase.RUNNING)
    decide(cluster)
    for state in list(cluster.pods.values()):
        cluster.upsert_pod(replace(state.pod, terminating=True))

    report = report_of(decide(cluster), "job")

    assert report.message == ""
    assert report.phase is Phase.RUNNING


def test_what_cannot_be_decided_is_left_out_and_named() -> None:
    class Faulty:
        """A plugin that cannot cope with one job."""

        name = "faulty"

        def job_ready(self, group: GroupState) -> bool:
            if group.group.name == "bad" and group.pending:
                raise ZeroDivisionError
            return True

    plugins = [Faulty(), *DEFAULT.plugins]
    framework = Framework([[Enabled(plugin) for plugin in plugins]], DEFAULT.actions)
    cluster = cluster_with(node("a", 9))
    add_gang(cluster, "bad", {"t": (1, {"cpu": 1})})
    add_gang(cluster, "good", {"t": (1, {"cpu": 1})})

    decisions = Session(cluster, framework, EPOCH).run()

    assert [bind.pod_uid for bind in decisions.binds] == ["good-t-0"]
    assert {failure.uid for failure in decisions.failures} == {"bad-uid"}

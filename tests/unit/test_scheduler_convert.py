"""Messages of the controller, and reports to it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hekla.domain.errors import InvalidError
from hekla.domain.phases import PodGroupPhase, QueueState
from hekla.v1 import meta_pb2, pod_group_pb2, queue_pb2
from services.scheduler import convert
from services.scheduler.core.objects import Condition, GroupReport

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
META = meta_pb2.ObjectMeta(
    uid="u", namespace="ns", name="g", generation=3, creation_timestamp="2026-01-02T03:04:05Z"
)


def test_a_group_is_read_whole() -> None:
    spec = pod_group_pb2.PodGroupSpec(
        min_member=2,
        min_task_member={"worker": 1, "ps": 1},
        queue="q",
        priority_class_name="high",
        min_resources={"cpu": "2"},
    )
    status = pod_group_pb2.PodGroupStatus(phase="Inqueue", running=1)

    group = convert.group(pod_group_pb2.PodGroup(metadata=META, spec=spec, status=status))

    assert (group.uid, group.namespace, group.name, group.generation) == ("u", "ns", "g", 3)
    assert (group.queue, group.min_member, group.priority_class) == ("q", 2, "high")
    assert group.min_task_member == (("ps", 1), ("worker", 1))
    assert group.min_resources == (("cpu", 2000),)
    assert (group.created, group.phase, group.running) == (NOW, PodGroupPhase.INQUEUE, 1)


def test_a_group_of_which_little_is_said_has_the_defaults() -> None:
    group = convert.group(pod_group_pb2.PodGroup(metadata=META))

    assert (group.queue, group.phase) == ("default", PodGroupPhase.PENDING)
    assert group.min_resources is None


def test_amounts_spelled_as_quotas_count_them_are_the_pods_own() -> None:
    texts = {"requests.cpu": "2", "limits.cpu": "9", "count/pods": "3", "pods": "3"}
    spec = pod_group_pb2.PodGroupSpec(min_resources={**texts, "requests.nvidia.com/gpu": "1"})

    group = convert.group(pod_group_pb2.PodGroup(metadata=META, spec=spec))

    assert group.min_resources == (("cpu", 2000), ("nvidia.com/gpu", 1), ("pods", 3))


@pytest.mark.parametrize(
    "message",
    [
        pod_group_pb2.PodGroup(
            metadata=META, spec=pod_group_pb2.PodGroupSpec(min_resources={"cpu": "much"})
        ),
        pod_group_pb2.PodGroup(
            metadata=META, status=pod_group_pb2.PodGroupStatus(phase="Sleeping")
        ),
        pod_group_pb2.PodGroup(),
    ],
    ids=["amount", "phase", "time"],
)
def test_a_group_of_which_no_sense_can_be_made_is_refused(
    message: pod_group_pb2.PodGroup,
) -> None:
    with pytest.raises((InvalidError, ValueError)):
        convert.group(message)


def test_a_queue_is_read_whole_and_a_limit_of_zero_is_a_limit() -> None:
    spec = queue_pb2.QueueSpec(
        weight=4,
        capability={"cpu": "0", "memory": "1Gi"},
        reclaimable=False,
        guarantee=queue_pb2.Guarantee(resource={"cpu": "1"}),
        parent="root",
        priority=7,
    )
    status = queue_pb2.QueueStatus(state="Closed")

    queue = convert.queue(queue_pb2.Queue(metadata=META, spec=spec, status=status))

    assert (queue.name, queue.weight, queue.parent, queue.priority) == ("g", 4, "root", 7)
    assert queue.capability == (("cpu", 0), ("memory", 1 << 30))
    assert queue.guarantee == (("cpu", 1000),)
    assert queue.state is QueueState.CLOSED
    assert not queue.reclaimable


def test_a_queue_that_says_nothing_of_it_is_open_and_reclaimable() -> None:
    queue = convert.queue(queue_pb2.Queue(metadata=META))

    assert queue.state is QueueState.OPEN
    assert queue.reclaimable


def test_a_report_says_all_that_was_decided() -> None:
    condition = Condition("Unschedulable", "True", "NotEnoughResources", "why", "s", NOW)
    report = GroupReport("u", PodGroupPhase.INQUEUE, (condition,), 1, 2, 3, "why")

    message = convert.report(report)

    assert message.uid == "u"
    status = message.status
    assert (status.phase, status.running, status.succeeded, status.failed) == (
        "Inqueue",
        1,
        2,
        3,
    )
    [told] = status.conditions
    assert (told.type, told.status, told.reason, told.message, told.transition_id) == (
        "Unschedulable",
        "True",
        "NotEnoughResources",
        "why",
        "s",
    )
    assert told.last_transition_time == "2026-01-02T03:04:05Z"

"""Messages of the controller to what the core is told, and reports of the core to messages."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from hekla.domain import resources, timestamps
from hekla.domain.names import DEFAULT_QUEUE
from hekla.domain.phases import PodGroupPhase, QueueState
from hekla.v1 import pod_group_pb2, pod_group_service_pb2, queue_pb2
from services.scheduler.core.objects import (
    EPOCH,
    Amounts,
    Condition,
    Group,
    GroupReport,
    Queue,
    amounts,
    limits,
)

_REQUESTS: Final = "requests."
_LEFT_OUT: Final = ("count/", "limits.")


def group(message: pod_group_pb2.PodGroup) -> Group:
    """A pod group.

    Raises:
        InvalidError: an amount, a time or a phase cannot be read.
    """
    metadata, spec, status = message.metadata, message.spec, message.status
    return Group(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        generation=metadata.generation,
        queue=spec.queue or DEFAULT_QUEUE,
        min_member=spec.min_member,
        min_task_member=tuple(sorted(spec.min_task_member.items())),
        min_resources=_pod_amounts(tuple(sorted(spec.min_resources.items()))),
        priority_class=spec.priority_class_name,
        created=timestamps.from_text(metadata.creation_timestamp),
        phase=PodGroupPhase(status.phase or PodGroupPhase.PENDING),
        conditions=tuple(_condition(each) for each in status.conditions),
        running=status.running,
        succeeded=status.succeeded,
        failed=status.failed,
    )


def queue(message: queue_pb2.Queue) -> Queue:
    """A queue.

    Raises:
        InvalidError: an amount, a time or a state cannot be read.
    """
    metadata, spec = message.metadata, message.spec
    return Queue(
        name=metadata.name,
        priority=spec.priority,
        weight=spec.weight or 1,
        parent=spec.parent,
        state=QueueState(message.status.state or QueueState.OPEN),
        capability=limits(resources.parse_list(spec.capability)),
        guarantee=amounts(resources.parse_list(spec.guarantee.resource)),
        deserved=amounts(resources.parse_list(spec.deserved)),
        reclaimable=spec.reclaimable if spec.HasField("reclaimable") else True,
        created=timestamps.from_text(metadata.creation_timestamp),
    )


def report(of: GroupReport) -> pod_group_service_pb2.SchedulingReport:
    """The report of one group."""
    status = pod_group_pb2.PodGroupStatus(
        phase=of.phase.value,
        conditions=[
            pod_group_pb2.PodGroupCondition(
                type=each.type,
                status=each.status,
                transition_id=each.transition_id,
                last_transition_time=timestamps.to_text(each.last_transition_time),
                reason=each.reason,
                message=each.message,
            )
            for each in of.conditions
        ],
        running=of.running,
        succeeded=of.succeeded,
        failed=of.failed,
    )
    return pod_group_service_pb2.SchedulingReport(uid=of.uid, status=status)


@lru_cache(maxsize=4096)
def _pod_amounts(spelled: tuple[tuple[str, str], ...]) -> Amounts | None:
    """What pods ask for, out of amounts that are also spelled as quotas count them."""
    if not spelled:
        return None
    plain = {
        name.removeprefix(_REQUESTS): text
        for name, text in spelled
        if name.startswith(_REQUESTS)
    }
    plain |= {
        name: text for name, text in spelled if not name.startswith((_REQUESTS, *_LEFT_OUT))
    }
    return amounts(resources.parse_list(plain))


def _condition(message: pod_group_pb2.PodGroupCondition) -> Condition:
    return Condition(
        type=message.type,
        status=message.status,
        reason=message.reason,
        message=message.message,
        transition_id=message.transition_id,
        last_transition_time=(
            timestamps.from_text(message.last_transition_time)
            if message.last_transition_time
            else EPOCH
        ),
    )

"""Rules for pod groups that others make: theirs must be a queue that takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hekla.api.fields import shown
from hekla.api.pod_group import PodGroup
from hekla.domain import paths, quantity, syntax
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.phases import QueueState
from services.webhook.rules.job_parts import topology_violations
from services.webhook.rules.registry import CREATION, WRITES, Case, Rule

POD_GROUP: Final = ("PodGroup",)


def _queue(case: Case[PodGroup]) -> Iterator[Violation]:
    name = case.object.spec.queue
    if name and syntax.subdomain_error(name) is None and case.world.queue(name) is None:
        yield Violation("spec.queue", f"does not exist: {shown(name)}")


def _queue_open(case: Case[PodGroup]) -> Iterator[Violation]:
    name = case.object.spec.queue
    queue = case.world.queue(name) if name and syntax.subdomain_error(name) is None else None
    state = (queue.status.state or QueueState.OPEN) if queue is not None else QueueState.OPEN
    if state != QueueState.OPEN:
        message = f"must be an {QueueState.OPEN} queue, is {shown(name)}, which is {state}"
        yield Violation("spec.queue", message, passing=True)


def _topology(case: Case[PodGroup]) -> Iterator[Violation]:
    spec = case.object.spec
    yield from topology_violations(spec.network_topology, "spec.networkTopology")
    for index, policy in enumerate(spec.sub_group_policy or ()):
        place = paths.at("spec.subGroupPolicy", index, "networkTopology")
        yield from topology_violations(policy.network_topology, place)


def _amounts(case: Case[PodGroup]) -> Iterator[Violation]:
    for name, value in (case.object.spec.min_resources or {}).items():
        try:
            amount = quantity.parse(value)
        except InvalidError:
            continue  # out of bounds, and told of as such
        if amount < 0:
            message = f"must be >= 0, is {shown(value)}"
            yield Violation(paths.at("spec.minResources", name), message)


def _members(case: Case[PodGroup]) -> Iterator[Violation]:
    for task, least in (case.object.spec.min_task_member or {}).items():
        if least < 0:
            place = paths.at("spec.minTaskMember", task)
            yield Violation(place, f"must be >= 0, is {least}")


RULES: Final = (
    Rule(
        name="pod-group.queue",
        kinds=POD_GROUP,
        operations=CREATION,
        check=_queue,
        path="spec.queue",
        says="The queue exists.",
        example="queue: nope",
    ),
    Rule(
        name="pod-group.queue-open",
        kinds=POD_GROUP,
        operations=CREATION,
        check=_queue_open,
        path="spec.queue",
        says="The queue is Open, or so new that it has no state. (A passing refusal.)",
        example="queue: closed",
    ),
    Rule(
        name="pod-group.network-topology",
        kinds=POD_GROUP,
        operations=CREATION,
        check=_topology,
        path="spec.networkTopology, spec.subGroupPolicy[].networkTopology",
        says="The highest tier is given by number or by name, not both.",
        example="{highestTierAllowed: 1, highestTierName: rack}",
    ),
    Rule(
        name="pod-group.amounts",
        kinds=POD_GROUP,
        operations=WRITES,
        check=_amounts,
        path="spec.minResources",
        says="Amounts are not negative.",
        example='minResources: {cpu: "-1"}',
        beyond=True,
    ),
    Rule(
        name="pod-group.task-members",
        kinds=POD_GROUP,
        operations=WRITES,
        check=_members,
        path="spec.minTaskMember",
        says="Minimums of tasks are not negative.",
        example="minTaskMember: {a: -1}",
        beyond=True,
    ),
)

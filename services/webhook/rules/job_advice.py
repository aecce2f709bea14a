"""What is legal in a job but cannot help: its author is told, and nothing is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from hekla.api.job import Job, LifecyclePolicy, TaskSpec
from hekla.domain import duration, paths, resources, syntax
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.phases import JobAction, JobEvent
from services.webhook.rules import unbuilt
from services.webhook.rules.job import JOB, placed_tasks
from services.webhook.rules.policies import placed_policies
from services.webhook.rules.registry import CREATION, WRITES, Case, Operation, Rule
from services.webhook.rules.world import World

_OF_PODS: Final = frozenset({JobEvent.POD_FAILED, JobEvent.POD_EVICTED})


def _unbuilt(case: Case[Job]) -> Iterator[Violation]:
    for text in unbuilt.in_job(case.object):
        yield Violation("", text)


def _empty_volumes(case: Case[Job]) -> Iterator[Violation]:
    for index, volume in enumerate(case.object.spec.volumes or ()):
        if not volume.volume_claim_name and volume.volume_claim is None:
            message = "has neither volumeClaimName nor volumeClaim: it is an emptyDir"
            yield Violation(paths.at("spec.volumes", index), message)


def _min_success(case: Case[Job]) -> Iterator[Violation]:
    spec = case.object.spec
    total = sum(task.replicas for task in spec.tasks or ())
    if spec.min_success is not None and spec.min_success > total:
        message = f"is {spec.min_success}, but there are {total} pods in all: it is never met"
        yield Violation("spec.minSuccess", message)


def _pending(case: Case[Job]) -> Iterator[Violation]:
    for path, policies in placed_policies(case.object):
        for index, policy in enumerate(policies):
            if JobEvent.POD_PENDING in _events(policy) and not _lasts(policy.timeout):
                message = f"{JobEvent.POD_PENDING} without a timeout does nothing"
                yield Violation(paths.at(path, index), message)


def _lasts(timeout: str | None) -> bool:
    try:
        return timeout is not None and bool(duration.parse(timeout))
    except InvalidError:
        return False


def _events(policy: LifecyclePolicy) -> set[str | None]:
    return {policy.event, *(policy.events or ())}


def _unreachable(case: Case[Job]) -> Iterator[Violation]:
    """Policies behind one that always takes what they wait for."""
    for path, policies in placed_policies(case.object):
        taker: int | None = None
        for index, policy in enumerate(policies):
            if policy.exit_code is not None and taker is not None:
                message = (
                    f"matches no failed pod: one that exits with {policy.exit_code} has failed,"
                    f" and {paths.at(path, taker)} comes first"
                )
                yield Violation(paths.at(path, index), message)
            if taker is None and {JobEvent.POD_FAILED, JobEvent.ANY} & _events(policy):
                taker = index


def _hidden(case: Case[Job]) -> Iterator[Violation]:
    """Policies of the job for what every task has a policy of its own."""
    tasks = case.object.spec.tasks or []
    taken = [set[str | None]().union(*map(_events, task.policies or ())) for task in tasks]
    if not tasks or not all(taken):
        return
    for index, policy in enumerate(case.object.spec.policies or ()):
        events = _events(policy) - {None, ""}
        if events and all(
            event in _OF_PODS and all(event in each or JobEvent.ANY in each for each in taken)
            for event in events
        ):
            message = "can never match: each task has a policy of its own for it"
            yield Violation(paths.at("spec.policies", index), message)


def _no_partitions(case: Case[Job]) -> Iterator[Violation]:
    partitioned = {place for place, task in placed_tasks(case.object) if task.partition_policy}
    for path, policies in placed_policies(case.object):
        place = path.removesuffix(".policies")
        if place in partitioned or (place == "spec" and partitioned):
            continue
        for index, policy in enumerate(policies):
            if policy.action == JobAction.RESTART_PARTITION:
                message = (
                    f"{JobAction.RESTART_PARTITION} does nothing without a partitionPolicy"
                )
                yield Violation(paths.at(path, index), message)


def _empty_task(case: Case[Job]) -> Iterator[Violation]:
    for place, task in placed_tasks(case.object):
        if task.replicas == 0 and task.policies:
            yield Violation(f"{place}.policies", "can never match: the task has no pods")


def request(task: TaskSpec) -> Mapping[str, int]:
    """What a node must have free for a pod of the task; nothing if it cannot be read."""
    try:
        return resources.pod_request(task.template or {})
    except (InvalidError, AttributeError, TypeError, ValueError):
        return {}


def _too_large(case: Case[Job]) -> Iterator[Violation]:
    nodes = list(case.world.nodes())
    if not nodes:
        return
    most: dict[str, int] = {}
    for node in nodes:
        most = resources.largest(most, node)
    for place, task in placed_tasks(case.object):
        wanted = {name: amount for name, amount in request(task).items() if amount > 0}
        if any(_fits(wanted, node) for node in nodes):
            continue
        over = [name for name, amount in wanted.items() if amount > most.get(name, 0)]
        shown = ", ".join(
            f"{name} {resources.format_amount(name, wanted[name])}"
            f" (the most is {resources.format_amount(name, most.get(name, 0))})"
            for name in (over or wanted)
        )
        message = f"asks for more than any node has: {shown}"
        yield Violation(f"{place}.template", message)


def _fits(wanted: Mapping[str, int], node: Mapping[str, int]) -> bool:
    return all(amount <= node.get(name, 0) for name, amount in wanted.items())


def _too_much(case: Case[Job]) -> Iterator[Violation]:
    """A minimum that the queue can never hold."""
    spec = case.object.spec
    capability, holder = _capability(spec.queue, case.world)
    if not capability:
        return
    tasks = [(request(task), task) for task in spec.tasks or ()]
    for name, bound in capability.items():
        least = _least(name, tasks, spec.min_available or 0)
        if least > bound:
            message = (
                f"needs {name} {resources.format_amount(name, least)} at least, but"
                f" {holder} has a capability of {resources.format_amount(name, bound)}"
            )
            yield Violation("spec.minAvailable", message)


def _capability(queue: str, world: World) -> tuple[Mapping[str, int], str]:
    found = world.queue(queue) if syntax.subdomain_error(queue) is None else None
    if found is None or not found.spec.capability:
        return {}, ""
    try:
        return resources.parse_list(found.spec.capability), f"queue {queue}"
    except InvalidError:
        return {}, ""


def _least(name: str, tasks: list[tuple[Mapping[str, int], TaskSpec]], minimum: int) -> int:
    """The least amount of a resource that ``minimum`` pods of these tasks can ask for."""
    total, left = 0, minimum
    for wanted, task in sorted(tasks, key=lambda each: each[0].get(name, 0)):
        count = max(0, min(task.replicas, left))
        total += count * wanted.get(name, 0)
        left -= count
    required = sum(min(task.min_available or 0, task.replicas) for _, task in tasks)
    if required <= minimum:
        own = sum(
            min(task.min_available or 0, task.replicas) * wanted.get(name, 0)
            for wanted, task in tasks
        )
        total = max(total, own)
    return total


def _rule(
    name: str,
    check: Callable[[Case[Any]], Iterator[Violation]],
    path: str,
    says: str,
    example: str,
    *,
    operations: frozenset[Operation] = CREATION,
) -> Rule:
    return Rule(
        name=f"advice.{name}",
        kinds=JOB,
        operations=operations,
        check=check,
        path=path,
        says=says,
        example=example,
        warns=True,
    )


RULES: Final = (
    _rule(
        "unbuilt",
        _unbuilt,
        "spec",
        "What is not built yet is named.",
        "plugins: {svc: []}",
        operations=WRITES,
    ),
    _rule(
        "empty-volume",
        _empty_volumes,
        "spec.volumes[]",
        "A volume without a claim and a claim's name is an emptyDir.",
        "volumes: [{mountPath: /a}]",
    ),
    _rule(
        "min-success",
        _min_success,
        "spec.minSuccess",
        "No more pods can succeed than there are.",
        "minSuccess: 4, 3 replicas",
        operations=WRITES,
    ),
    _rule(
        "pending",
        _pending,
        "spec.policies[]",
        "PodPending does something only with a timeout.",
        "{event: PodPending, action: RestartJob}",
    ),
    _rule(
        "unreachable",
        _unreachable,
        "spec.policies[]",
        "A policy for an exit code comes before one for PodFailed or `*`.",
        "[{event: PodFailed, …}, {exitCode: 42, …}]",
    ),
    _rule(
        "hidden",
        _hidden,
        "spec.policies[]",
        "A job's policy for pods is of use to a task that has none of its own for the event.",
        "policies for PodFailed of the job and of each task",
    ),
    _rule(
        "partitions",
        _no_partitions,
        "spec.policies[]",
        "RestartPartition needs partitions.",
        "{event: PodFailed, action: RestartPartition}",
    ),
    _rule(
        "empty-task",
        _empty_task,
        "spec.tasks[].policies",
        "A task without pods has no events.",
        "{replicas: 0, policies: [{event: TaskCompleted, …}]}",
    ),
    _rule(
        "too-large",
        _too_large,
        "spec.tasks[].template",
        "A pod fits some node, as far as nodes are known.",
        "requests: {cpu: 1000}",
    ),
    _rule(
        "too-much",
        _too_much,
        "spec.minAvailable",
        "The queue's capability is enough for the job's minimum.",
        "minAvailable: 4 pods of 1 core, capability: {cpu: 2}",
        operations=WRITES,
    ),
)

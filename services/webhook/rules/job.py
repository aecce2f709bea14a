"""Rules for a new job, and those of them that an update has to keep to as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hekla.api.fields import shown
from hekla.api.job import Job, JobSpec, TaskSpec, VolumeSpec
from hekla.api.meta import NetworkTopologySpec
from hekla.domain import paths, syntax
from hekla.domain.errors import Violation
from hekla.domain.names import ROOT_QUEUE, pod_name
from hekla.domain.phases import QueueState
from services.webhook.rules import dependencies, pods, policies
from services.webhook.rules.world import Limits, World

PLUGINS: Final = ("env", "hcclrank", "mpi", "pytorch", "ray", "ssh", "svc", "tensorflow")

_GENERATED: Final = 5
"""Characters that complete a generateName."""


def violations(job: Job, world: World, limits: Limits) -> Iterator[Violation]:
    """All that is wrong with a new job whose defaults are filled in."""
    spec = job.spec
    tasks = spec.tasks or []
    if spec.tasks is None:
        yield Violation("spec.tasks", "is required: a job has at least one task")
    yield from _name(job)
    yield from sizes(spec, limits)
    yield from _task_names(tasks)
    for index, task in enumerate(tasks):
        place = paths.at("spec.tasks", index)
        yield from pod_names(job, task, place)
        yield from policies.violations(task.policies or [], f"{place}.policies")
        yield from _template(task, place)
    yield from policies.violations(spec.policies or [], "spec.policies")
    yield from dependencies.violations(tasks)
    yield from _plugins(spec)
    yield from _volumes(spec.volumes or [])
    yield from _queue(spec.queue, world)


def sizes(spec: JobSpec, limits: Limits) -> Iterator[Violation]:
    """Counts that do not fit each other. An update has to keep to this too."""
    total = 0
    for index, task in enumerate(spec.tasks or ()):
        place = paths.at("spec.tasks", index)
        total += task.replicas
        if task.min_available is not None and task.min_available > task.replicas:
            message = f"must be <= replicas, which is {task.replicas}; is {task.min_available}"
            yield Violation(f"{place}.minAvailable", message)
        yield from _partitions(task, f"{place}.partitionPolicy")
    if spec.min_available is not None and spec.min_available > total:
        message = f"must be <= the replicas of all tasks, {total}; is {spec.min_available}"
        yield Violation("spec.minAvailable", message)
    if total > limits.max_pods_per_job:
        message = f"must not ask for more than {limits.max_pods_per_job} pods, asks for {total}"
        yield Violation("spec.tasks", message)
    yield from _topology(spec.network_topology, "spec.networkTopology")


def pod_names(job: Job, task: TaskSpec, place: str) -> Iterator[Violation]:
    """The longest name of a pod of ``task``, which is its host name too."""
    meta = job.metadata
    name = meta.name or f"{meta.generate_name or ''}{'x' * _GENERATED}"
    longest = pod_name(name, task.name, max(task.replicas - 1, 0))
    if len(longest) > syntax.LABEL_LENGTH:
        message = (
            f"makes the pod name {shown(longest)}, which has {len(longest)} characters;"
            f" there may be {syntax.LABEL_LENGTH}"
        )
        yield Violation(f"{place}.name", message)


def _name(job: Job) -> Iterator[Violation]:
    name = job.metadata.name
    if len(name) > syntax.LABEL_LENGTH:
        message = f"must be no more than {syntax.LABEL_LENGTH} characters, has {len(name)}"
        yield Violation("metadata.name", message)
    elif name and "svc" in (job.spec.plugins or {}):
        wrong = syntax.label_error(name)
        if wrong is not None:
            message = f"{wrong}, since the plugin svc makes a Service of that name; is"
            yield Violation("metadata.name", f"{message} {shown(name)}")


def _task_names(tasks: Sequence[TaskSpec]) -> Iterator[Violation]:
    seen: dict[str, int] = {}
    for index, task in enumerate(tasks):
        first = seen.setdefault(task.name, index)
        if first != index:
            message = f"is the name of spec.tasks[{first}] too: {shown(task.name)}"
            yield Violation(paths.at("spec.tasks", index, "name"), message)


def _template(task: TaskSpec, place: str) -> Iterator[Violation]:
    found = pods.violations(task.template, f"{place}.template")
    yield from found
    if not found and task.topology_policy not in (None, "", "none"):
        yield from pods.whole_cores(task.template, f"{place}.template")


def _partitions(task: TaskSpec, place: str) -> Iterator[Violation]:
    policy = task.partition_policy
    if policy is None:
        return
    yield from _topology(policy.network_topology, f"{place}.networkTopology")
    total, size = policy.total_partitions, policy.partition_size
    if total is None or size is None or total < 1 or size < 1:
        return  # out of bounds, and told of as such
    if total * size != task.replicas:
        message = f"has {total} partitions of {size} pods, but replicas is {task.replicas}"
        yield Violation(place, message)
    elif policy.min_partitions > 0 and task.min_available is not None:
        least = policy.min_partitions * size
        if least != task.min_available:
            message = f"makes {least} pods the least, but minAvailable is {task.min_available}"
            yield Violation(f"{place}.minPartitions", message)


def _topology(topology: NetworkTopologySpec | None, place: str) -> Iterator[Violation]:
    if (
        topology is not None
        and topology.highest_tier_allowed is not None
        and topology.highest_tier_name
    ):
        yield Violation(place, "must not have both highestTierAllowed and highestTierName")


def _plugins(spec: JobSpec) -> Iterator[Violation]:
    plugins = spec.plugins or {}
    for name in plugins:
        if name not in PLUGINS:
            message = f"is no plugin of jobs, which are {', '.join(PLUGINS)}"
            yield Violation(paths.at("spec.plugins", name), message)
    if "mpi" in plugins:
        master = _argument(plugins["mpi"], "master") or "master"
        if master not in {task.name for task in spec.tasks or ()}:
            yield Violation("spec.plugins.mpi", f"needs the task {shown(master)}")


def _argument(arguments: Sequence[str], name: str) -> str:
    """The value of ``--name=value`` or ``--name value``, of the last if there are several."""
    found = ""
    for index, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag in (f"--{name}", f"-{name}"):
            found = value if equals else "".join(arguments[index + 1 : index + 2])
    return found


def _volumes(volumes: Sequence[VolumeSpec]) -> Iterator[Violation]:
    seen: dict[str, int] = {}
    for index, volume in enumerate(volumes):
        place = paths.at("spec.volumes", index)
        first = seen.setdefault(volume.mount_path or "", index)
        if first != index:
            message = f"is the path of spec.volumes[{first}] too: {shown(volume.mount_path)}"
            yield Violation(f"{place}.mountPath", message)
        name = volume.volume_claim_name
        if name and volume.volume_claim is not None:
            message = "must be empty beside a volumeClaim: a claim is used or made, not both"
            yield Violation(f"{place}.volumeClaimName", message)
        elif name:
            wrong = syntax.subdomain_error(name)
            if wrong is not None:
                yield Violation(f"{place}.volumeClaimName", f"{wrong}, is {shown(name)}")


def _queue(name: str, world: World) -> Iterator[Violation]:
    if syntax.subdomain_error(name) is not None:
        return  # out of bounds, and told of as such
    queue = world.queue(name)
    if queue is None:
        yield Violation("spec.queue", f"does not exist: {shown(name)}")
        return
    # A queue nobody has looked at yet is open.
    state = queue.status.state or QueueState.OPEN
    if state != QueueState.OPEN:
        message = f"must be an {QueueState.OPEN} queue, is {shown(name)}, which is {state}"
        yield Violation("spec.queue", message, passing=True)
    elif name == ROOT_QUEUE:
        yield Violation("spec.queue", f"must not be {ROOT_QUEUE}, which takes no jobs itself")
    elif children := world.child_queues(name):
        below = ", ".join(sorted(children)[:5])
        message = f"must be a queue without children, is {shown(name)}, which has {below}"
        yield Violation("spec.queue", message)

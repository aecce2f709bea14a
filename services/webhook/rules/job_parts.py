"""Rules for the parts of a job: partitions, templates, plugins, volumes, its queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hekla.api.fields import shown
from hekla.api.job import Job
from hekla.api.meta import NetworkTopologySpec
from hekla.domain import paths, syntax
from hekla.domain.errors import Violation
from hekla.domain.names import ROOT_QUEUE
from hekla.domain.phases import QueueState
from services.webhook.rules import pods
from services.webhook.rules.job import JOB, placed_tasks
from services.webhook.rules.registry import CREATION, WRITES, Case, Rule
from services.webhook.rules.world import VOLUME_WITHOUT_CLAIM

PLUGINS: Final = ("env", "hcclrank", "mpi", "pytorch", "ray", "ssh", "svc", "tensorflow")
NO_NUMA_POLICY: Final = (None, "", "none")


def topology_violations(
    topology: NetworkTopologySpec | None, place: str
) -> Iterator[Violation]:
    """A limit on the network's tiers that is given twice."""
    if (
        topology is not None
        and topology.highest_tier_allowed is not None
        and topology.highest_tier_name
    ):
        yield Violation(place, "must not have both highestTierAllowed and highestTierName")


def _topologies(case: Case[Job]) -> Iterator[Violation]:
    yield from topology_violations(case.object.spec.network_topology, "spec.networkTopology")
    for place, task in placed_tasks(case.object):
        if task.partition_policy is not None:
            yield from topology_violations(
                task.partition_policy.network_topology,
                f"{place}.partitionPolicy.networkTopology",
            )


def _partitions(case: Case[Job]) -> Iterator[Violation]:
    for place, task in placed_tasks(case.object):
        policy = task.partition_policy
        if policy is None:
            continue
        total, size = policy.total_partitions, policy.partition_size
        if total is None or size is None or total < 1 or size < 1:
            continue  # out of bounds, and told of as such
        if total * size != task.replicas:
            message = f"has {total} partitions of {size} pods, but replicas is {task.replicas}"
            yield Violation(f"{place}.partitionPolicy", message)
        elif policy.min_partitions > 0 and task.min_available is not None:
            least = policy.min_partitions * size
            if least != task.min_available:
                message = (
                    f"makes {least} pods the least, but minAvailable is {task.min_available}"
                )
                yield Violation(f"{place}.partitionPolicy.minPartitions", message)


def _templates(case: Case[Job]) -> Iterator[Violation]:
    for place, task in placed_tasks(case.object):
        yield from pods.violations(task.template, f"{place}.template")


def _known_fields(case: Case[Job]) -> Iterator[Violation]:
    for place, task in placed_tasks(case.object):
        yield from pods.unknown(task.template, f"{place}.template")
    for index, volume in enumerate(case.object.spec.volumes or ()):
        place = paths.at("spec.volumes", index, "volumeClaim")
        yield from pods.unknown(volume.volume_claim, place, pods.CLAIM)


def _whole_cores(case: Case[Job]) -> Iterator[Violation]:
    for place, task in placed_tasks(case.object):
        if task.topology_policy not in NO_NUMA_POLICY:
            yield from pods.whole_cores(task.template, f"{place}.template")


def _plugins(case: Case[Job]) -> Iterator[Violation]:
    for name in case.object.spec.plugins or {}:
        if name not in PLUGINS:
            message = f"is no plugin of jobs, which are {', '.join(PLUGINS)}"
            yield Violation(paths.at("spec.plugins", name), message)


def _mpi_master(case: Case[Job]) -> Iterator[Violation]:
    plugins = case.object.spec.plugins or {}
    if "mpi" in plugins:
        master = _argument(plugins["mpi"], "master") or "master"
        if master not in {task.name for task in case.object.spec.tasks or ()}:
            yield Violation("spec.plugins.mpi", f"needs the task {shown(master)}")


def _argument(arguments: Sequence[str], name: str) -> str:
    """The value of ``--name=value`` or ``--name value``, of the last if there are several."""
    found = ""
    for index, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag in (f"--{name}", f"-{name}"):
            found = value if equals else "".join(arguments[index + 1 : index + 2])
    return found


def _mount_paths(case: Case[Job]) -> Iterator[Violation]:
    seen: dict[str, int] = {}
    for index, volume in enumerate(case.object.spec.volumes or ()):
        first = seen.setdefault(volume.mount_path or "", index)
        if first != index:
            message = f"is the path of spec.volumes[{first}] too: {shown(volume.mount_path)}"
            yield Violation(paths.at("spec.volumes", index, "mountPath"), message)


def _mounts_apart(case: Case[Job]) -> Iterator[Violation]:
    """Paths of the job's volumes where a container has a volume of its own."""
    wanted = {
        volume.mount_path: paths.at("spec.volumes", index, "mountPath")
        for index, volume in enumerate(case.object.spec.volumes or ())
        if volume.mount_path
    }
    for place, task in placed_tasks(case.object) if wanted else ():
        for path, mount in pods.mounts(task.template, f"{place}.template"):
            if path in wanted:
                yield Violation(mount, f"is the path of {wanted[path]} too: {shown(path)}")


def _claims(case: Case[Job]) -> Iterator[Violation]:
    for index, volume in enumerate(case.object.spec.volumes or ()):
        place = paths.at("spec.volumes", index)
        name = volume.volume_claim_name
        if name and volume.volume_claim is not None:
            message = "must be empty beside a volumeClaim: a claim is used or made, not both"
            yield Violation(f"{place}.volumeClaimName", message)
        elif name:
            wrong = syntax.subdomain_error(name)
            if wrong is not None:
                yield Violation(f"{place}.volumeClaimName", f"{wrong}, is {shown(name)}")


def _without_claim(case: Case[Job]) -> Iterator[Violation]:
    if VOLUME_WITHOUT_CLAIM not in case.limits.compat:
        return
    for index, volume in enumerate(case.object.spec.volumes or ()):
        if not volume.volume_claim_name and volume.volume_claim is None:
            message = "must have a volumeClaimName or a volumeClaim"
            yield Violation(paths.at("spec.volumes", index), message)


def _queue_there(case: Case[Job]) -> Iterator[Violation]:
    name = case.object.spec.queue
    if syntax.subdomain_error(name) is None and case.world.queue(name) is None:
        yield Violation("spec.queue", f"does not exist: {shown(name)}")


def _queue_open(case: Case[Job]) -> Iterator[Violation]:
    name = case.object.spec.queue
    queue = case.world.queue(name) if syntax.subdomain_error(name) is None else None
    if queue is None:
        return
    # A queue nobody has looked at yet is open.
    state = queue.status.state or QueueState.OPEN
    if state != QueueState.OPEN:
        message = f"must be an {QueueState.OPEN} queue, is {shown(name)}, which is {state}"
        yield Violation("spec.queue", message, passing=True)


def _queue_below_root(case: Case[Job]) -> Iterator[Violation]:
    if case.object.spec.queue == ROOT_QUEUE:
        yield Violation("spec.queue", f"must not be {ROOT_QUEUE}, which takes no jobs itself")


def _queue_leaf(case: Case[Job]) -> Iterator[Violation]:
    name = case.object.spec.queue
    if name == ROOT_QUEUE or syntax.subdomain_error(name) is not None:
        return
    if children := case.world.child_queues(name):
        below = ", ".join(sorted(children)[:5])
        message = f"must be a queue without children, is {shown(name)}, which has {below}"
        yield Violation("spec.queue", message)


RULES: Final = (
    Rule(
        name="job.network-topology",
        kinds=JOB,
        operations=WRITES,
        check=_topologies,
        path="spec.networkTopology, spec.tasks[].partitionPolicy.networkTopology",
        says="The highest tier is given by number or by name, not both.",
        example="{highestTierAllowed: 1, highestTierName: rack}",
    ),
    Rule(
        name="job.partitions",
        kinds=JOB,
        operations=WRITES,
        check=_partitions,
        path="spec.tasks[].partitionPolicy",
        says="Partitions times their size are the replicas, and the least partitions times"
        " their size the task's minAvailable.",
        example="replicas: 5, partitionPolicy: {totalPartitions: 2, partitionSize: 2}",
    ),
    Rule(
        name="job.template",
        kinds=JOB,
        operations=CREATION,
        check=_templates,
        path="spec.tasks[].template",
        says="Kubernetes could make the task's pods (see Pod templates).",
        example="containers: [{name: c}]",
    ),
    Rule(
        name="job.known-fields",
        kinds=JOB,
        operations=CREATION,
        check=_known_fields,
        path="spec.tasks[].template, spec.volumes[].volumeClaim",
        says="Kubernetes knows every field, also deep inside.",
        example="containers: [{name: c, image: x, comand: [sh]}]",
        beyond=True,
    ),
    Rule(
        name="job.whole-cores",
        kinds=JOB,
        operations=CREATION,
        check=_whole_cores,
        path="spec.tasks[].template.spec.containers[].resources",
        says="With a topologyPolicy every container asks for whole cores, and not for 0.",
        example="topologyPolicy: restricted, requests: {cpu: 1500m}",
    ),
    Rule(
        name="job.plugins",
        kinds=JOB,
        operations=CREATION,
        check=_plugins,
        path="spec.plugins",
        says=f"The plugins are among {', '.join(PLUGINS)}.",
        example="plugins: {evn: []}",
    ),
    Rule(
        name="job.mpi-master",
        kinds=JOB,
        operations=CREATION,
        check=_mpi_master,
        path="spec.plugins.mpi",
        says="The plugin mpi has its master task: `--master`, or `master`.",
        example="plugins: {mpi: []}, tasks: [{name: worker}]",
    ),
    Rule(
        name="job.mount-paths",
        kinds=JOB,
        operations=CREATION,
        check=_mount_paths,
        path="spec.volumes[].mountPath",
        says="No two volumes are mounted at one path.",
        example="volumes: [{mountPath: /a}, {mountPath: /a}]",
    ),
    Rule(
        name="job.mounts-apart",
        kinds=JOB,
        operations=CREATION,
        check=_mounts_apart,
        path="spec.tasks[].template.spec.containers[].volumeMounts[].mountPath",
        says="No container mounts a volume of its own where the job mounts one.",
        example="volumes: [{mountPath: /a}], volumeMounts: [{name: v, mountPath: /a}]",
        beyond=True,
    ),
    Rule(
        name="job.claims",
        kinds=JOB,
        operations=CREATION,
        check=_claims,
        path="spec.volumes[].volumeClaimName",
        says="A volume uses a claim by its name, or makes one, not both.",
        example="{volumeClaimName: a, volumeClaim: {}}",
    ),
    Rule(
        name="job.volume-without-claim",
        kinds=JOB,
        operations=CREATION,
        check=_without_claim,
        path="spec.volumes[]",
        says=f"Only with the compat switch `{VOLUME_WITHOUT_CLAIM}`: a volume has a claim or a"
        " claim's name.",
        example="volumes: [{mountPath: /a}]",
    ),
    Rule(
        name="job.queue-root",
        kinds=JOB,
        operations=CREATION,
        check=_queue_below_root,
        path="spec.queue",
        says="The queue is not root.",
        example="queue: root",
    ),
    Rule(
        name="job.queue",
        kinds=JOB,
        operations=CREATION,
        check=_queue_there,
        path="spec.queue",
        says="The queue exists.",
        example="queue: nope",
    ),
    Rule(
        name="job.queue-open",
        kinds=JOB,
        operations=CREATION,
        check=_queue_open,
        path="spec.queue",
        says="The queue is Open, or so new that it has no state. (A passing refusal.)",
        example="queue: closed",
    ),
    Rule(
        name="job.queue-leaf",
        kinds=JOB,
        operations=CREATION,
        check=_queue_leaf,
        path="spec.queue",
        says="No queue stands below the queue.",
        example="queue: parent",
    ),
)

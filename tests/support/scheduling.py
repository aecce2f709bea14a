"""Small random worlds, tight enough that every rule of the policy gets its turn."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cache
from random import Random

from hekla.domain.phases import PodGroupPhase, PodPhase, QueueState
from hekla.domain.selector import Operator, Requirement
from services.scheduler import policy
from services.scheduler.core.cluster import Cluster
from services.scheduler.core.objects import (
    EPOCH,
    NODE_NAME,
    Group,
    Node,
    NodeTerm,
    Pod,
    PodSpec,
    PriorityClass,
    Queue,
    Taint,
    Toleration,
    amounts,
    limits,
)
from tests.support.oracle_nodes import Rules, World

ZONES = ("a", "b")


def random_world(random: Random) -> World:
    """A world of a few nodes, queues and groups, some of it running already."""
    world = World()
    world.priority_classes = [
        PriorityClass("high", 10),
        PriorityClass("low", random.choice([1, 5]), global_default=random.random() < 0.3),
    ]
    world.nodes = [random_node(random, f"n{at}") for at in range(random.randint(1, 5))]
    world.queues = random_queues(random)
    for at in range(random.randint(1, 4)):
        add_random_group(random, world, at)
    for at in range(random.randint(0, 2)):
        spec = PodSpec.of({"cpu": random.randint(1, 3)})
        node = random.choice(world.nodes).name
        phase = random.choice([PodPhase.RUNNING, PodPhase.SUCCEEDED])
        world.pods.append(
            Pod(f"f{at}", "other", f"f{at}", spec, node=node, phase=phase, ours=False)
        )
    return world


def random_node(random: Random, name: str) -> Node:
    """A small node."""
    allocatable = {"cpu": random.randint(2, 12), "memory": random.choice([4, 8, 12, 16])}
    allocatable["pods"] = random.choice([2, 4, 10])
    if random.random() < 0.3:
        allocatable["gpu"] = random.randint(0, 3)
    if random.random() < 0.1:
        allocatable["nvidia.com/gpu"] = random.randint(1, 3)
    labels = {"zone": random.choice(ZONES)}
    if random.random() < 0.5:
        labels["size"] = str(random.randint(1, 9))
    return Node(
        name,
        allocatable,
        labels=labels,
        taints=random_taints(random),
        unschedulable=random.random() < 0.08,
        ready=random.random() > 0.05,
    )


def random_taints(random: Random) -> tuple[Taint, ...]:
    """Mostly none; some keep pods away, some ask them to stay away."""
    taints = []
    if random.random() < 0.15:
        effect = random.choice(["NoSchedule", "NoExecute"])
        taints.append(Taint("keep", random.choice(["away", "5", "7"]), effect))
    for key in ("soft", "mild"):
        if random.random() < 0.2:
            taints.append(Taint(key, random.choice(["", "5"]), "PreferNoSchedule"))
    return tuple(taints)


def random_toleration(random: Random) -> Toleration:
    """Any operator, key and effect."""
    effect = random.choice(["", "", "NoSchedule", "PreferNoSchedule"])
    key = random.choice(["keep", "soft", "mild"])
    match random.choice(["Exists", "all", "Equal", "Lt", "Gt"]):
        case "Exists":
            return Toleration(key, "Exists", effect=effect)
        case "all":
            return Toleration("", "Exists", effect=effect)
        case "Equal":
            return Toleration(key, "Equal", random.choice(["away", ""]), effect)
        case operator:
            return Toleration(key, operator, random.choice(["6", "much"]), effect)


def random_term(random: Random) -> NodeTerm:
    """A term of a node affinity."""
    zone = frozenset({random.choice(ZONES)})
    size = frozenset({str(random.randint(1, 9))})
    expressions = [
        Requirement("zone", random.choice([Operator.IN, Operator.NOT_IN]), zone),
        Requirement("size", random.choice([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
        Requirement("size", random.choice([Operator.GREATER, Operator.LESS]), size),
    ]
    fields = [Requirement(NODE_NAME, Operator.IN, frozenset({random.choice(["n0", "n1"])}))]
    return NodeTerm(
        tuple(random.sample(expressions, random.choice([0, 1, 1, 1, 2]))),
        tuple(fields) if random.random() < 0.2 else (),
    )


def random_queues(random: Random) -> list[Queue]:
    """Up to three queues below the root, some of them limited."""

    def capability() -> dict[str, int]:
        names = [name for name in ("cpu", "memory", "gpu") if random.random() < 0.4]
        return {name: random.randint(0 if name == "gpu" else 2, 12) for name in names}

    queues = [Queue("root", capability=limits(capability() if random.random() < 0.2 else {}))]
    for at in range(random.randint(1, 3)):
        queues.append(
            Queue(
                f"q{at}",
                priority=random.choice([0, 0, 0, 1]),
                parent=random.choice(["", "root", *(queue.name for queue in queues)]),
                state=random.choice([QueueState.OPEN] * 9 + [QueueState.CLOSING]),
                capability=limits(capability() if random.random() < 0.4 else {}),
            )
        )
    return queues


def random_spec(random: Random) -> PodSpec:
    """What a task asks for."""
    request = {}
    if random.random() < 0.9:
        request["cpu"] = random.choice([1, 1, 2, 2, 3, 4])
    if random.random() < 0.6:
        request["memory"] = random.choice([1, 1, 2, 3, 5])
    if random.random() < 0.1:
        request["gpu"] = random.randint(1, 2)
    if random.random() < 0.07:
        request["nvidia.com/gpu"] = 1
    terms = [random_term(random) for _ in range(random.choice([0] * 8 + [1, 2]))]
    wishes = [
        (random.choice([1, 1, 5, 50]), random_term(random))
        for _ in range(random.choice([0, 0, 0, 1, 2, 3]))
    ]
    tolerations = [random_toleration(random) for _ in range(random.choice([0, 0, 0, 1, 2]))]
    return PodSpec.of(
        request,
        node_selector={"zone": random.choice(ZONES)} if random.random() < 0.15 else {},
        node_terms=tuple(terms),
        node_preferences=tuple(wishes),
        tolerations=tuple(tolerations),
        priority=random.choice([None, None, 3, 7]),
        priority_class=random.choice(["", "", "high", "missing"]),
        features=("hostPorts",) if random.random() < 0.03 else (),
    )


def add_random_group(random: Random, world: World, at: int) -> None:
    """Another group, with pods of a few tasks in any state."""
    name, uid = f"g{at}", f"g{at}-uid"
    tasks = {f"t{each}": random.randint(0, 4) for each in range(random.randint(1, 3))}
    pods = sum(tasks.values())
    names = [queue.name for queue in world.queues if queue.name != "root"]
    started = random.random() < 0.3
    task_minimum: tuple[tuple[str, int], ...] = ()
    if random.random() < 0.3:
        task_minimum = tuple((task, random.randint(0, many)) for task, many in tasks.items())
    group = Group(
        uid,
        "ns",
        name,
        queue=random.choice(names) if random.random() < 0.97 else "missing",
        min_member=_minimum(random, pods),
        min_task_member=task_minimum,
        min_resources=amounts({"cpu": random.randint(1, 6)}) if random.random() < 0.5 else None,
        priority_class=random.choice(["", "high", "low"]),
        created=EPOCH + timedelta(seconds=random.randint(0, 2)),
        phase=random.choice([PodGroupPhase.PENDING, PodGroupPhase.INQUEUE]),
    )
    world.groups.append(group)
    for task, many in tasks.items():
        spec = random_spec(random)
        for index in range(many):
            pod = Pod(
                f"{name}-{task}-{index}-uid",
                "ns",
                f"{name}-{task}-{index}",
                spec if random.random() < 0.9 else random_spec(random),
                group=name,
                group_uid=random.choice([uid, ""]),
                task=task,
                index=index if random.random() < 0.9 else None,
                gated=random.random() < 0.03,
            )
            if started and random.random() < 0.6:
                pod = _somewhere(random, world, pod)
            world.pods.append(pod)


def _minimum(random: Random, pods: int) -> int:
    if random.random() < 0.05:
        return pods + 1
    return random.choice([0, 1, pods, pods, pods // 2, max(0, pods - 1)])


def _somewhere(random: Random, world: World, pod: Pod) -> Pod:
    phases = [PodPhase.PENDING, PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED]
    return replace(
        pod,
        node=random.choice([node.name for node in world.nodes]),
        phase=random.choice(phases),
        terminating=random.random() < 0.2,
        gated=False,
    )


def cluster_of(world: World, random: Random | None = None) -> Cluster:
    """The cluster that learns of the world by events, in any order."""
    cluster = Cluster()
    events = [
        *((cluster.upsert_node, node) for node in world.nodes),
        *((cluster.upsert_queue, queue) for queue in world.queues),
        *((cluster.upsert_priority_class, it) for it in world.priority_classes),
        *((cluster.upsert_group, group) for group in world.groups),
        *((cluster.upsert_pod, pod) for pod in world.pods),
    ]
    if random is not None:
        random.shuffle(events)
    for tell, what in events:
        tell(what)  # type: ignore[operator]
    return cluster


def random_rules(random: Random) -> Rules:
    """A configuration."""
    plugins = ["priority", "gang", "predicates", "nodeorder", "binpack"]
    if random.random() < 0.3:
        plugins = [name for name in plugins if random.random() < 0.8]
        random.shuffle(plugins)
    return Rules(
        actions=("allocate",) if random.random() < 0.2 else ("enqueue", "allocate", "backfill"),
        plugins=tuple(plugins),
        binpack=random.choice([1, 10]),
        weights=(("cpu", random.choice([1, 5])), ("memory", 1), ("gpu", 2)),
        nodeorder=tuple(
            (part, random.choice([1, 2, weight]) if random.random() < 0.3 else weight)
            for part, weight in Rules.nodeorder
        ),
    )


@cache
def policy_of(rules: Rules) -> policy.Policy:
    """The same configuration; its plugins serve one cluster after the other."""
    return load_policy(rules)


def load_policy(rules: Rules) -> policy.Policy:
    """The same configuration, as a file, with plugins of its own."""
    weights = dict(rules.weights)
    arguments: dict[str, object] = {
        "binpack.weight": rules.binpack,
        "binpack.cpu": weights["cpu"],
        "binpack.memory": weights["memory"],
    }
    if "gpu" in weights:
        arguments |= {"binpack.resources": "gpu", "binpack.resources.gpu": weights["gpu"]}
    lines = [f'actions: "{", ".join(rules.actions)}"', "tiers:", "- plugins:"]
    for name in rules.plugins:
        lines.append(f"  - name: {name}")
        if name == "binpack":
            lines.append(f"    arguments: {arguments}")
        if name == "nodeorder":
            parts = {f"{part}.weight": weight for part, weight in rules.nodeorder}
            lines.append(f"    arguments: {parts}")
    if not rules.plugins:
        lines[-1] = "- plugins: []"
    return policy.load("\n".join(lines))

"""Makers of the table of admission: what must be said of which object, and who says so.

AD and JP rows are its end-to-end tests, U rows its unit tests, C rows published cases. All
rows stand in one world, so that each door is opened once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hekla.domain.names import (
    FLOW_API_VERSION,
    JOB_API_VERSION,
    SCHEDULING_API_VERSION,
    TOPOLOGY_API_VERSION,
)

Manifest = Mapping[str, Any]

P: Final = "spec.policies[0]"
T: Final = "spec.tasks[0]"
BOTH_TIERS: Final = {"highestTierAllowed": 1, "highestTierName": "rack"}
TIERS: Final = '{"mode": "hard"'
WEIGHTS: Final = "metadata.annotations[volcano.sh/hierarchy-weights]"
HIERARCHY: Final = "metadata.annotations[volcano.sh/hierarchy]"
LEAST: Final = "metadata.annotations[volcano.sh/jdb-min-available]"
MOST: Final = "metadata.annotations[volcano.sh/jdb-max-unavailable]"
ANY: Final = "…"
"""A value that is too long to write here: something stands there."""
NONE: Final = ""
"""Nothing stands there."""

RESTART: Final = "RestartJob"
X63: Final = "j" * (63 - len("-t-9"))


@dataclass(frozen=True, slots=True)
class Row:
    """One judgement."""

    source: str
    object: Manifest
    refuse: Mapping[str, str] | None = None
    """Paths, each with the value that stands there; None if the object is admitted."""
    old: Manifest | None = None
    """What it replaces, if it is an update."""
    delete: bool = False
    stored: Mapping[str, Any] = field(default_factory=dict)
    """Fields of what is stored."""
    warned: Sequence[str] = ()
    """Rules that warn."""
    compat: frozenset[str] = frozenset()
    protect_used: bool = False
    extra_warns: bool = False
    differs: str = ""
    """Words of the row of docs/differences.md, where Volcano judges otherwise."""


def template(*, containers: Sequence[Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod template."""
    given = [{"name": "c", "image": "busybox"}] if containers is None else containers
    return {"spec": {"restartPolicy": "Never", "containers": list(given), **spec}}


def asking(*, pod: Any = None, **resources: Any) -> dict[str, Any]:
    """A template whose container asks for something."""
    more = {} if pod is None else {"resources": pod}
    container = {"name": "c", "image": "busybox", "resources": resources}
    return template(containers=[container], **more)


def task(name: str | None = "task-1", replicas: int = 1, **more: Any) -> dict[str, Any]:
    """A task."""
    named = {} if name is None else {"name": name}
    return {**named, "replicas": replicas, "template": template(), **more}


def job(*tasks: Any, name: str = "j", **spec: Any) -> dict[str, Any]:
    """A job as the end-to-end tests of Volcano begin with."""
    return {
        "apiVersion": JOB_API_VERSION,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "minAvailable": 1,
            "queue": "default",
            "tasks": list(tasks) or [task()],
            "policies": [{"event": "PodEvicted", "action": "RestartTask"}],
            **spec,
        },
    }


def bare(*tasks: Any, **spec: Any) -> dict[str, Any]:
    """A job that says as little as it can."""
    made = job(*tasks, **spec)
    given = made["spec"]
    kept = {key: value for key, value in given.items() if key in {*spec, "tasks"}}
    return {**made, "spec": kept}


def policies(*given: Mapping[str, Any]) -> dict[str, Any]:
    """A job with these policies."""
    return job(policies=list(given))


def queue(
    name: str = "q",
    annotations: Mapping[str, str] | None = None,
    state: str | None = None,
    pods: int | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A queue."""
    status: dict[str, Any] = {} if state is None else {"state": state}
    if pods is not None:
        status["allocated"] = {"pods": str(pods)}
    metadata: dict[str, Any] = {"name": name}
    if annotations:
        metadata["annotations"] = dict(annotations)
    made = {
        "apiVersion": SCHEDULING_API_VERSION,
        "kind": "Queue",
        "metadata": metadata,
        "spec": spec,
    }
    return {**made, "status": status} if status else made


def hierarchy(path: str | None, weights: str | None) -> dict[str, Any]:
    """A queue with the two annotations."""
    given = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    return queue(annotations={key: value for key, value in given.items() if value is not None})


def guarantee(**resources: str) -> dict[str, Any]:
    """What is guaranteed."""
    return {"resource": resources}


def group(namespace: str = "default", **spec: Any) -> dict[str, Any]:
    """A pod group."""
    return {
        "apiVersion": SCHEDULING_API_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": namespace},
        "spec": {"minMember": 1, **spec},
    }


def flow(name: str = "f", /, *more: Any, **steps: str) -> dict[str, Any]:
    """A flow: each step with what it comes after."""
    listed: list[Any] = [
        {"name": step, **({"dependsOn": {"targets": targets.split()}} if targets else {})}
        for step, targets in steps.items()
    ]
    return {
        "apiVersion": FLOW_API_VERSION,
        "kind": "JobFlow",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"flows": [*listed, *more]},
    }


def job_template(*tasks: Any, **spec: Any) -> dict[str, Any]:
    """A template of jobs."""
    made = job(*tasks, **spec)
    return {**made, "apiVersion": FLOW_API_VERSION, "kind": "JobTemplate"}


def cron(schedule: str = "* * * * *", name: str = "c", made: Any = None, **spec: Any) -> Any:
    """A cron job."""
    return {
        "apiVersion": JOB_API_VERSION,
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedule": schedule,
            "jobTemplate": {"spec": (made or job())["spec"]},
            **spec,
        },
    }


def hyper_node(*members: Any) -> dict[str, Any]:
    """A hypernode."""
    return {
        "apiVersion": TOPOLOGY_API_VERSION,
        "kind": "HyperNode",
        "metadata": {"name": "h"},
        "spec": {"tier": 1, "members": list(members)},
    }


def member(**selector: Any) -> dict[str, Any]:
    """Nodes of a hypernode."""
    return {"type": "Node", "selector": selector}


def pod(scheduler: str = "volcano", **annotations: str) -> dict[str, Any]:
    """A pod with a budget."""
    names = {"least": "volcano.sh/jdb-min-available", "most": "volcano.sh/jdb-max-unavailable"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "default",
            "annotations": {names[key]: value for key, value in annotations.items()},
        },
        "spec": {"schedulerName": scheduler, "containers": [{"name": "c", "image": "busybox"}]},
    }


LONG: Final = "q" * 64
CHAIN: Final = ("d1", "d2", "d3", "d4", "d5")
QUEUES: Final = (
    queue("open", state="Open"),
    queue("closed", state="Closed"),
    queue("closing", state="Closing"),
    queue("unknown", state="Unknown"),
    queue("q1", state="Open"),
    queue("q11", state="Open", parent="q1"),
    *(queue(name, parent=above) for above, name in zip(("root", *CHAIN), CHAIN, strict=False)),
    queue("busy", pods=1),
    queue("idle", pods=0),
    queue("shut", state="Closed"),
    queue("shut-child", state="Closed", parent="shut"),
    queue("cap", capability={"cpu": "15", "memory": "20Gi"}),
    queue("cap-a", parent="cap", capability={"cpu": "12"}),
    queue("gpus", capability={"x.io/gpu": "4"}),
    queue("gpus-a", parent="gpus"),
    queue("gpus-a-a", parent="gpus-a", capability={"x.io/gpu": "3"}),
    queue(
        "has",
        deserved={"cpu": "20", "memory": "40Gi"},
        guarantee=guarantee(cpu="20", memory="40Gi"),
    ),
    queue(
        "has-a",
        parent="has",
        deserved={"cpu": "8", "memory": "16Gi"},
        guarantee=guarantee(cpu="8", memory="16Gi"),
    ),
    queue(
        "has-b",
        parent="has",
        deserved={"cpu": "5", "memory": "10Gi"},
        guarantee=guarantee(cpu="5", memory="10Gi"),
    ),
    queue("plain"),
    queue(LONG),
    queue("small", capability={"cpu": "2"}),
    queue(
        "hier",
        annotations={
            "volcano.sh/hierarchy": "root/node1/node2",
            "volcano.sh/hierarchy-weights": "1/2/3",
        },
    ),
)
NODE: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
}
NAMESPACES: Final[Mapping[str, Mapping[str, str]]] = {
    "team": {"scheduling.volcano.sh/queue-name": "open"}
}
NAMESPACE: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "team", "annotations": NAMESPACES["team"]},
}
WORLD: Final = (*QUEUES, NODE, NAMESPACE)

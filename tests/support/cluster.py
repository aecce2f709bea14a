"""Makers of small clusters for the scheduler's tests; each says only what matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from hekla.domain.phases import PodGroupPhase
from services.scheduler import policy
from services.scheduler.core.cluster import Cluster
from services.scheduler.core.objects import (
    EPOCH,
    Decisions,
    Group,
    GroupReport,
    Node,
    Pod,
    PodSpec,
    Queue,
)
from services.scheduler.core.session import Session
from services.scheduler.framework import Framework

DEFAULT = policy.load().framework


def cluster_with(*nodes: Node, queues: tuple[Queue, ...] = (Queue("default"),)) -> Cluster:
    """A cluster with these nodes and queues."""
    cluster = Cluster()
    for node in nodes:
        cluster.upsert_node(node)
    for queue in queues:
        cluster.upsert_queue(queue)
    return cluster


def node(name: str, cpu: int = 0, *, memory: int = 1000, pods: int = 110, **rest: Any) -> Node:
    """A node; other resources go into ``more``."""
    more: Mapping[str, int] = rest.pop("more", {})
    return Node(name, {"cpu": cpu, "memory": memory, "pods": pods, **more}, **rest)


def add_gang(
    cluster: Cluster,
    name: str,
    tasks: Mapping[str, tuple[int, Mapping[str, int]]],
    *,
    minimum: int | None = None,
    pod: Mapping[str, Any] | None = None,
    **group: Any,
) -> list[Pod]:
    """A group that was let in, with its pods: (number, request) by task."""
    pods = [
        Pod(
            f"{name}-{task}-{index}",
            "ns",
            f"{name}-{task}-{index}",
            PodSpec.of(request, **(pod or {})),
            group=name,
            group_uid=f"{name}-uid",
            task=task,
            index=index,
        )
        for task, (number, request) in tasks.items()
        for index in range(number)
    ]
    group.setdefault("phase", PodGroupPhase.INQUEUE)
    least = len(pods) if minimum is None else minimum
    cluster.upsert_group(Group(f"{name}-uid", "ns", name, min_member=least, **group))
    for each in pods:
        cluster.upsert_pod(each)
    return pods


def decide(
    cluster: Cluster, framework: Framework = DEFAULT, *, now: datetime = EPOCH
) -> Decisions:
    """One session; that nothing failed in it is asserted."""
    decisions = Session(cluster, framework, now, uid="session").run()
    assert not decisions.failures
    return decisions


def placed(decisions: Decisions) -> dict[str, str]:
    """Node by pod uid."""
    return {bind.pod_uid: bind.node for bind in decisions.binds}


def report_of(decisions: Decisions, name: str) -> GroupReport:
    """What is told of a group."""
    return next(report for report in decisions.reports if report.uid == f"{name}-uid")


def confirm(cluster: Cluster, decisions: Decisions, **changes: Any) -> None:
    """The binds are seen to have happened, with further changes of the pods."""
    for bind in decisions.binds:
        pod = cluster.pods[bind.pod_uid].pod
        cluster.upsert_pod(replace(pod, node=bind.node, **changes))

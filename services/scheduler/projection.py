"""What the scheduler keeps of Kubernetes' objects. Runs in the I/O process, once an object.

Small values cross to the scheduling process, whose time is worth more. An object whose parts
cannot be read is kept, as one that is not placed, since what is left out takes no room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import orjson

from hekla.domain import names, resources, selector, timestamps
from hekla.domain.errors import InvalidError
from hekla.domain.phases import PodPhase
from services.scheduler import node_affinity
from services.scheduler.core.objects import (
    Node,
    Pod,
    PodSpec,
    PriorityClass,
    Taint,
    Toleration,
)
from services.scheduler.core.topology import HyperNode, Member
from services.scheduler.events import SeenPod

TASK_PRIORITY: Final = "volcano.sh/task-priority"
VOLUME_CLAIMS: Final = "volumeClaims"
UNREADABLE: Final = "unreadableRequest"
UNREADABLE_AFFINITY: Final = "unreadableNodeAffinity"
_PHASES: Final = {phase.value: phase for phase in PodPhase}
_SPEC: Final = (
    "affinity",
    "nodeSelector",
    "overhead",
    "priority",
    "priorityClassName",
    "resourceClaims",
    "resources",
    "tolerations",
    "topologySpreadConstraints",
)
_CONTAINER: Final = ("resources", "restartPolicy")


def pod(item: Mapping[str, Any]) -> SeenPod:
    """A pod."""
    metadata, spec = item["metadata"], item["spec"]
    status = item.get("status") or {}
    annotations = metadata.get("annotations") or {}
    labels = metadata.get("labels") or {}
    node = spec.get("nodeName") or ""
    seen = Pod(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        spec=_spec(_extract(spec, annotations)),
        group=annotations.get(names.GROUP_NAME) or "",
        group_uid=annotations.get(names.GROUP_UID) or "",
        task=annotations.get(names.TASK_SPEC) or labels.get(names.TASK_SPEC) or "",
        index=_whole(annotations.get(names.TASK_INDEX) or labels.get(names.TASK_INDEX)),
        created=timestamps.from_text(metadata["creationTimestamp"]),
        labels=labels,
        node=node,
        phase=_PHASES.get(status.get("phase") or "Pending", PodPhase.UNKNOWN),
        terminating="deletionTimestamp" in metadata,
        gated=bool(spec.get("schedulingGates")),
    )
    scheduler = spec.get("schedulerName") or ""
    if node:
        return SeenPod(seen, scheduler)
    told, others = _conditions(status.get("conditions") or ())
    return SeenPod(seen, scheduler, metadata["resourceVersion"], told, others)


def node(item: Mapping[str, Any]) -> Node:
    """A node."""
    metadata, spec = item["metadata"], item.get("spec") or {}
    status = item.get("status") or {}
    taints = tuple(
        Taint(taint["key"], taint.get("value") or "", taint.get("effect") or "NoSchedule")
        for taint in spec.get("taints") or ()
    )
    return Node(
        name=metadata["name"],
        allocatable=resources.parse_list(status.get("allocatable") or {}),
        labels=metadata.get("labels") or {},
        taints=tuple(sorted(taints, key=_taint_order)),
        unschedulable=bool(spec.get("unschedulable")),
        ready=any(
            condition.get("type") == "Ready" and condition.get("status") == "True"
            for condition in status.get("conditions") or ()
        ),
    )


def priority_class(item: Mapping[str, Any]) -> PriorityClass:
    """A priority class."""
    return PriorityClass(
        name=item["metadata"]["name"],
        value=item.get("value") or 0,
        global_default=bool(item.get("globalDefault")),
    )


def hyper_node(item: Mapping[str, Any]) -> HyperNode:
    """A hypernode; a member that cannot be read has no nodes."""
    members = (item.get("spec") or {}).get("members") or ()
    return HyperNode(
        name=item["metadata"]["name"],
        members=tuple(_member(member) for member in members),
        told=(item.get("status") or {}).get("nodeCount"),
    )


def _member(member: Mapping[str, Any]) -> Member:
    chosen = member.get("selector") or {}
    labels = None
    if chosen.get("labelMatch"):
        with suppress(InvalidError):
            labels = selector.from_object(chosen["labelMatch"])
    return Member(
        type=member.get("type") or "",
        name=(chosen.get("exactMatch") or {}).get("name") or "",
        pattern=(chosen.get("regexMatch") or {}).get("pattern") or "",
        labels=labels,
    )


def _extract(spec: Mapping[str, Any], annotations: Mapping[str, str]) -> bytes:
    """What ``PodSpec`` is made of, in a form that replicas share."""
    taken: dict[str, Any] = {key: spec[key] for key in _SPEC if spec.get(key) is not None}
    for key in ("containers", "initContainers"):
        taken[key] = [
            {part: container[part] for part in _CONTAINER if part in container}
            for container in spec.get(key) or ()
        ]
    if any(
        port.get("hostPort")
        for container in spec.get("containers") or ()
        for port in container.get("ports") or ()
    ):
        taken["hostPorts"] = True
    if any("persistentVolumeClaim" in volume for volume in spec.get("volumes") or ()):
        taken["claims"] = True
    if TASK_PRIORITY in annotations:
        taken["taskPriority"] = annotations[TASK_PRIORITY]
    return orjson.dumps(taken, option=orjson.OPT_SORT_KEYS)


@lru_cache(maxsize=4096)
def _spec(extract: bytes) -> PodSpec:
    spec = orjson.loads(extract)
    features = _features(spec)
    try:
        request = resources.pod_request(spec)
    except InvalidError:
        request, features = {}, [*features, UNREADABLE]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    try:
        required, preferred = (
            node_affinity.required(affinity),
            node_affinity.preferred(affinity),
        )
    except InvalidError:
        required, preferred, features = (), (), [*features, UNREADABLE_AFFINITY]
    priority = _whole(spec.get("taskPriority"))
    return PodSpec.of(
        request,
        node_selector=spec.get("nodeSelector") or {},
        node_terms=required,
        node_preferences=preferred,
        tolerations=tuple(
            Toleration(
                each.get("key") or "",
                each.get("operator") or "Equal",
                each.get("value") or "",
                each.get("effect") or "",
            )
            for each in spec.get("tolerations") or ()
        ),
        priority=spec.get("priority") if priority is None else priority,
        priority_class=spec.get("priorityClassName") or "",
        features=tuple(features),
    )


def _features(spec: Mapping[str, Any]) -> list[str]:
    """What else the pod demands of its node; what it only prefers is left out."""
    affinity = spec.get("affinity") or {}
    found = [
        kind
        for kind in ("podAffinity", "podAntiAffinity")
        if (affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    ]
    if any(
        constraint.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
        for constraint in spec.get("topologySpreadConstraints") or ()
    ):
        found.append("topologySpread")
    if spec.get("resourceClaims"):
        found.append("resourceClaims")
    if spec.get("hostPorts"):
        found.append("hostPorts")
    if spec.get("claims"):
        found.append(VOLUME_CLAIMS)
    return found


def _conditions(
    conditions: Iterable[Mapping[str, Any]],
) -> tuple[tuple[str, str], tuple[str, ...]]:
    told, others = ("", ""), []
    for condition in conditions:
        if condition.get("type") != "PodScheduled":
            others.append(orjson.dumps(condition).decode())
        elif condition.get("status") == "False":
            told = (condition.get("reason") or "", condition.get("message") or "")
    return told, tuple(others)


def _whole(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _taint_order(taint: Taint) -> tuple[str, str, str]:
    return (taint.key, taint.value, taint.effect)

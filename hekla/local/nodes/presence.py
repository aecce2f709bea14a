"""The nodes: their objects, and the leases that show they are alive."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, Final

from hekla.domain import resources, timestamps
from hekla.local.kinds import errors
from hekla.local.kinds.registry import LEASES, NODES, Object
from hekla.local.patches.standard import MergePatch
from hekla.local.storage.memory import Storage
from hekla.local.verbs.deletions import Deletion
from hekla.local.verbs.objects import Objects
from hekla.local.verbs.steps import at_once

LEASE_NAMESPACE: Final = "kube-node-lease"
HOST_IP: Final = "127.0.0.1"
GPU: Final = "nvidia.com/gpu"
_STORAGE: Final = "100Gi"
_RENEWALS_PER_SECOND: Final = 20
_RENEW_INTERVAL: Final = 10.0


def names(count: int) -> list[str]:
    """The names of that many nodes."""
    return [f"node-{index}" for index in range(count)]


def capacity(*, cpu: str, memory: str, gpus: int, pods: int) -> dict[str, str]:
    """What a node has.

    Raises:
        InvalidError: cpu or memory is not a quantity.
    """
    listed = {"cpu": cpu, "memory": memory, "ephemeral-storage": _STORAGE, "pods": str(pods)}
    if gpus:
        listed[GPU] = str(gpus)
    resources.parse_list(listed)
    return listed


def register(
    objects: Objects, storage: Storage, name: str, has: Mapping[str, str], *, now: datetime
) -> None:
    """Make the node's object, or bring what it has up to date."""
    if storage.latest(NODES, "", name) is None:
        objects.create(NODES, "", _node(name))
    entry = storage.latest(NODES, "", name)
    assert entry is not None
    old = entry.object().get("status", {})
    objects.write_status(NODES, "", name, uid=entry.uid, status=_status(old, name, has, now))


def unregister(objects: Objects, storage: Storage, *, keep: Collection[str]) -> None:
    """Drop the objects of nodes that this cluster had and has no more."""
    for entry in list(storage.select(NODES)):
        if entry.name not in keep and entry.object()["spec"].get("providerID") == _id(
            entry.name
        ):
            objects.delete(NODES, "", entry.name, Deletion())


def renew_interval(count: int) -> float:
    """Seconds between two renewals of a node's lease: longer where nodes are many."""
    return max(_RENEW_INTERVAL, count / _RENEWALS_PER_SECOND)


def renew(
    objects: Objects,
    storage: Storage,
    node_names: list[str],
    *,
    interval: float,
    now: Callable[[], datetime],
) -> None:
    """Renew the lease of every node."""
    for name in node_names:
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": int(interval * 4),
            "renewTime": timestamps.to_micro_text(now()),
        }
        body: Object = {"metadata": {"name": name}, "spec": spec}
        try:
            if storage.latest(LEASES, LEASE_NAMESPACE, name) is None:
                objects.create(LEASES, LEASE_NAMESPACE, body)
            else:
                change = MergePatch({"spec": spec})
                at_once(objects.patching(LEASES, LEASE_NAMESPACE, name, change))
        except errors.ApiError:
            continue  # somebody deleted the namespace: a node lives without


def _node(name: str) -> Object:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "amd64")
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": machine,
    }
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": _id(name)},
    }


def _id(name: str) -> str:
    return f"hekla://{name}"


def _status(old: Object, name: str, has: Mapping[str, str], now: datetime) -> Object:
    conditions: list[dict[str, Any]] = []
    before = {condition["type"]: condition for condition in old.get("conditions", [])}
    for type_, value, reason in (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ):
        same = before.get(type_, {}).get("status") == value
        since = before[type_]["lastTransitionTime"] if same else timestamps.to_text(now)
        conditions.append(
            {
                "type": type_,
                "status": value,
                "reason": reason,
                "lastHeartbeatTime": timestamps.to_text(now),
                "lastTransitionTime": since,
            }
        )
    return {
        **old,
        "capacity": dict(has),
        "allocatable": dict(has),
        "conditions": conditions,
        "addresses": [
            {"type": "InternalIP", "address": HOST_IP},
            {"type": "Hostname", "address": name},
        ],
        "nodeInfo": {
            "machineID": name,
            "systemUUID": name,
            "bootID": name,
            "kernelVersion": platform.release(),
            "osImage": "hekla local cluster",
            "containerRuntimeVersion": "hekla://1",
            "kubeletVersion": "v1.36.0",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    }

"""The columns of built-in kinds, as Kubernetes has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from hekla.local.answers import pod_columns
from hekla.local.answers.cells import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Cell,
    Columns,
    Row,
    age,
    head,
    own_age,
)
from hekla.local.kinds import registry
from hekla.local.kinds.registry import Object


def _texts(value: Object, *path: str) -> str:
    """What stands there, or that nothing does."""
    found: Any = value
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    if found is None or found in ("", []):
        return NONE
    return ",".join(map(str, found)) if isinstance(found, list) else str(found)


def _count(value: Object, *fields: str) -> int:
    return sum(len(value.get(field) or ()) for field in fields)


def _node(node: Object, now: datetime) -> list[Cell]:
    status = node.get("status", {})
    ready = [each for each in status.get("conditions", []) if each.get("type") == "Ready"]
    words = ["Unknown"]
    if ready:
        words = ["Ready" if ready[0].get("status") == "True" else "NotReady"]
    if node.get("spec", {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    info = status.get("nodeInfo", {})
    addresses = {each.get("type"): each.get("address") for each in status.get("addresses", [])}
    return [
        node["metadata"]["name"],
        ",".join(words),
        _roles(node["metadata"].get("labels", {})),
        own_age(node, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        *(
            info.get(key) or UNKNOWN
            for key in ("osImage", "kernelVersion", "containerRuntimeVersion")
        ),
    ]


def _roles(labels: Mapping[str, str]) -> str:
    prefix = "node-role.kubernetes.io/"
    found = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)}
    found |= {value for key, value in labels.items() if key == "kubernetes.io/role"}
    return ",".join(sorted(found - {""})) or NONE


def _service(service: Object, now: datetime) -> list[Cell]:
    spec = service.get("spec", {})
    ports = [
        f"{port.get('port')}{':' + str(port['nodePort']) if port.get('nodePort') else ''}"
        f"/{port.get('protocol', 'TCP')}"
        for port in spec.get("ports") or []
    ]
    selector = ",".join(f"{key}={text}" for key, text in (spec.get("selector") or {}).items())
    return [
        service["metadata"]["name"],
        spec.get("type", ""),
        _texts(spec, "clusterIP"),
        _texts(spec, "externalIPs"),
        ",".join(ports) or NONE,
        own_age(service, now),
        selector or NONE,
    ]


def _event(event: Object, now: datetime) -> list[Cell]:
    about, source = event.get("involvedObject", {}), event.get("source", {})
    kind = str(about.get("kind", "")).lower()
    where = ", ".join(each for each in (source.get("component"), source.get("host")) if each)
    at = event.get("eventTime")
    last = event.get("series", {}).get("lastObservedTime") or event.get("lastTimestamp") or at
    count = event.get("series", {}).get("count") or event.get("count") or (1 if at else 0)
    return [
        age(last, now),
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        where or event.get("reportingComponent", ""),
        str(event.get("message", "")).strip(),
        age(event.get("firstTimestamp") or at, now),
        int(count),
        event["metadata"]["name"],
    ]


_ACCESS: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access_modes(value: Object) -> str:
    return ",".join(_ACCESS.get(mode, mode) for mode in value.get("accessModes") or [])


def _claim(claim: Object, now: datetime) -> list[Cell]:
    spec, status = claim.get("spec", {}), claim.get("status", {})
    phase = "Terminating" if "deletionTimestamp" in claim["metadata"] else status.get("phase")
    bound = bool(spec.get("volumeName"))
    return [
        claim["metadata"]["name"],
        phase or "",
        spec.get("volumeName", ""),
        str(status.get("capacity", {}).get("storage", "")) if bound else "",
        _access_modes(status) if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        own_age(claim, now),
        spec.get("volumeMode") or "Filesystem",
    ]


def _volume(volume: Object, now: datetime) -> list[Cell]:
    spec, status = volume.get("spec", {}), volume.get("status", {})
    phase = "Terminating" if "deletionTimestamp" in volume["metadata"] else status.get("phase")
    claim = spec.get("claimRef") or {}
    return [
        volume["metadata"]["name"],
        str(spec.get("capacity", {}).get("storage", "")),
        _access_modes(spec),
        spec.get("persistentVolumeReclaimPolicy") or "Retain",
        phase or "",
        f"{claim.get('namespace', '')}/{claim['name']}" if claim.get("name") else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        own_age(volume, now),
        spec.get("volumeMode") or "Filesystem",
    ]


def _storage_class(value: Object, now: datetime) -> list[Cell]:
    metadata = value["metadata"]
    default = metadata.get("annotations", {}).get("storageclass.kubernetes.io/is-default-class")
    return [
        metadata["name"] + (" (default)" if default == "true" else ""),
        value.get("provisioner", ""),
        value.get("reclaimPolicy") or "Delete",
        value.get("volumeBindingMode") or "Immediate",
        bool(value.get("allowVolumeExpansion")),
        own_age(value, now),
    ]


def _priority_class(value: Object, now: datetime) -> list[Cell]:
    return [
        value["metadata"]["name"],
        value.get("value", 0),
        bool(value.get("globalDefault")),
        own_age(value, now),
        value.get("preemptionPolicy") or "PreemptLowerPriority",
    ]


def _budget(budget: Object, now: datetime) -> list[Cell]:
    spec, status = budget.get("spec", {}), budget.get("status", {})
    return [
        budget["metadata"]["name"],
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        status.get("disruptionsAllowed", 0),
        own_age(budget, now),
    ]


def _definition(definition: Object, _: datetime) -> list[Cell]:
    metadata = definition["metadata"]
    return [metadata["name"], metadata.get("creationTimestamp", "")]


def _named(*cells: Callable[[Object], Cell]) -> Row:
    """A row of the name, some cells, and the age."""
    return lambda value, now: [
        value["metadata"]["name"],
        *[cell(value) for cell in cells],
        own_age(value, now),
    ]


def _webhooks(value: Object) -> int:
    return _count(value, "webhooks")


_DATA: Final = (NAME, head("Data", "integer"), AGE)
PLAIN: Final = Columns((NAME, AGE), _named())
BUILT_IN: Final[Mapping[str, Columns]] = {
    registry.PODS.resource: Columns(
        (
            NAME,
            head("Ready"),
            head("Status"),
            head("Restarts"),
            AGE,
            head("IP", wide=True),
            head("Node", wide=True),
            head("Nominated Node", wide=True),
            head("Readiness Gates", wide=True),
        ),
        lambda pod, now: pod_columns.row(pod, lambda text: age(text, now)),
    ),
    registry.NODES.resource: Columns(
        (
            NAME,
            head("Status"),
            head("Roles"),
            AGE,
            head("Version"),
            head("Internal-IP", wide=True),
            head("External-IP", wide=True),
            head("OS-Image", wide=True),
            head("Kernel-Version", wide=True),
            head("Container-Runtime", wide=True),
        ),
        _node,
    ),
    registry.NAMESPACES.resource: Columns(
        (NAME, head("Status"), AGE), _named(lambda value: _texts(value, "status", "phase"))
    ),
    registry.SERVICES.resource: Columns(
        (
            NAME,
            head("Type"),
            head("Cluster-IP"),
            head("External-IP"),
            head("Port(s)"),
            AGE,
            head("Selector", wide=True),
        ),
        _service,
    ),
    registry.CONFIGMAPS.resource: Columns(
        _DATA, _named(lambda value: _count(value, "data", "binaryData"))
    ),
    registry.SECRETS.resource: Columns(
        (NAME, head("Type"), head("Data", "integer"), AGE),
        _named(lambda value: value.get("type", ""), lambda value: _count(value, "data")),
    ),
    registry.SERVICE_ACCOUNTS.resource: Columns(
        (NAME, head("Secrets", "integer"), AGE),
        _named(lambda value: _count(value, "secrets")),
    ),
    registry.CLAIMS.resource: Columns(
        (
            NAME,
            head("Status"),
            head("Volume"),
            head("Capacity"),
            head("Access Modes"),
            head("StorageClass"),
            head("VolumeAttributesClass"),
            AGE,
            head("VolumeMode", wide=True),
        ),
        _claim,
    ),
    registry.VOLUMES.resource: Columns(
        (
            NAME,
            head("Capacity"),
            head("Access Modes"),
            head("Reclaim Policy"),
            head("Status"),
            head("Claim"),
            head("StorageClass"),
            head("VolumeAttributesClass"),
            head("Reason"),
            AGE,
            head("VolumeMode", wide=True),
        ),
        _volume,
    ),
    registry.STORAGE_CLASSES.resource: Columns(
        (
            NAME,
            head("Provisioner"),
            head("ReclaimPolicy"),
            head("VolumeBindingMode"),
            head("AllowVolumeExpansion", "boolean"),
            AGE,
        ),
        _storage_class,
    ),
    registry.EVENTS.resource: Columns(
        (
            head("Last Seen"),
            head("Type"),
            head("Reason"),
            head("Object"),
            head("Subobject", wide=True),
            head("Source", wide=True),
            head("Message"),
            head("First Seen", wide=True),
            head("Count", "integer", wide=True),
            NAME._replace(priority=1),
        ),
        _event,
    ),
    registry.PRIORITY_CLASSES.resource: Columns(
        (
            NAME,
            head("Value", "integer"),
            head("Global-Default", "boolean"),
            AGE,
            head("PreemptionPolicy"),
        ),
        _priority_class,
    ),
    registry.LEASES.resource: Columns(
        (NAME, head("Holder"), AGE),
        _named(lambda value: value.get("spec", {}).get("holderIdentity", "")),
    ),
    registry.DISRUPTION_BUDGETS.resource: Columns(
        (
            NAME,
            head("Min Available"),
            head("Max Unavailable"),
            head("Allowed Disruptions", "integer"),
            AGE,
        ),
        _budget,
    ),
    registry.DEFINITIONS.resource: Columns((NAME, head("Created At", "date")), _definition),
    **dict.fromkeys(
        (registry.MUTATING_WEBHOOKS.resource, registry.VALIDATING_WEBHOOKS.resource),
        Columns((NAME, head("Webhooks", "integer"), AGE), _named(_webhooks)),
    ),
}

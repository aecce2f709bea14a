"""What ``kubectl get`` shows of an object, in the columns that its users know.

Pure: an object and the time in, cells out. Of built-in kinds the columns are Kubernetes' own;
of others, what their definition declares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from hekla.domain import ages, timestamps
from hekla.domain.errors import InvalidError
from hekla.local import jsonpath, pod_columns, registry
from hekla.local.checks import shown
from hekla.local.registry import Column, Kind, Object

Cell = str | int | float | bool | None
Row = Callable[[Object, datetime], list[Cell]]

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
NAME: Final = Column("Name", "string", "", "name", "Name must be unique within a namespace.", 0)
AGE: Final = Column(
    "Age", "date", ".metadata.creationTimestamp", "", "How long ago the object was made."
)


class Columns(NamedTuple):
    """The columns of a kind, and how a row is made."""

    heads: Sequence[Column]
    row: Row

    def cells(self, value: Object, now: datetime) -> list[Cell]:
        """The row of an object."""
        try:
            return self.row(value, now)
        except (AttributeError, KeyError, TypeError, ValueError):
            # Of some kinds anything is kept, and one odd object must not hide the others.
            left = [UNKNOWN] * (len(self.heads) - 1)
            name = value["metadata"]["name"]
            return [*left, name] if self.heads[-1].name == NAME.name else [name, *left]


def age(text: object, now: datetime) -> str:
    """How long ago a time was."""
    if not isinstance(text, str) or not text:
        return UNKNOWN
    try:
        return ages.span(now - timestamps.from_text(text))
    except InvalidError:
        return "<invalid>"


def of(kind: Kind) -> Columns:
    """The columns of a kind."""
    if kind.schema is not None:
        return _declared(kind.columns or (AGE,))
    return _BUILT_IN.get(kind.resource, _PLAIN)


def _head(name: str, kind: str = "string", *, wide: bool = False) -> Column:
    return Column(name, kind, "", "", "", 1 if wide else 0)


def _own_age(value: Object, now: datetime) -> str:
    return age(value["metadata"].get("creationTimestamp"), now)


def _declared(declared: Sequence[Column]) -> Columns:
    readers = [_reader(column) for column in declared]

    def row(value: Object, now: datetime) -> list[Cell]:
        return [value["metadata"]["name"], *[read(value, now) for read in readers]]

    return Columns([NAME, *declared], row)


def _reader(column: Column) -> Callable[[Object, datetime], Cell]:
    find = jsonpath.compiled(column.path)

    def read(value: Object, now: datetime) -> Cell:
        for found in find(value):
            return _cell(column.type, found, now)
        return None

    return read


def _cell(kind: str, value: Any, now: datetime) -> Cell:
    """A value as a column of that type shows it; nothing if it is of another."""
    cell: Cell = None
    if kind == "date":
        cell = age(value, now) if isinstance(value, str) else None
    elif kind == "string":
        cell = value if isinstance(value, str) else shown(value)
    elif kind == "boolean":
        cell = value if isinstance(value, bool) else None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        cell = int(value) if kind == "integer" else value
    return cell


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
        _own_age(node, now),
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
        _own_age(service, now),
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
        _own_age(claim, now),
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
        _own_age(volume, now),
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
        _own_age(value, now),
    ]


def _priority_class(value: Object, now: datetime) -> list[Cell]:
    return [
        value["metadata"]["name"],
        value.get("value", 0),
        bool(value.get("globalDefault")),
        _own_age(value, now),
        value.get("preemptionPolicy") or "PreemptLowerPriority",
    ]


def _budget(budget: Object, now: datetime) -> list[Cell]:
    spec, status = budget.get("spec", {}), budget.get("status", {})
    return [
        budget["metadata"]["name"],
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        status.get("disruptionsAllowed", 0),
        _own_age(budget, now),
    ]


def _definition(definition: Object, _: datetime) -> list[Cell]:
    metadata = definition["metadata"]
    return [metadata["name"], metadata.get("creationTimestamp", "")]


def _named(*cells: Callable[[Object], Cell]) -> Row:
    """A row of the name, some cells, and the age."""
    return lambda value, now: [
        value["metadata"]["name"],
        *[cell(value) for cell in cells],
        _own_age(value, now),
    ]


def _webhooks(value: Object) -> int:
    return _count(value, "webhooks")


_DATA: Final = (NAME, _head("Data", "integer"), AGE)
_PLAIN: Final = Columns((NAME, AGE), _named())
_BUILT_IN: Final[Mapping[str, Columns]] = {
    registry.PODS.resource: Columns(
        (
            NAME,
            _head("Ready"),
            _head("Status"),
            _head("Restarts"),
            AGE,
            _head("IP", wide=True),
            _head("Node", wide=True),
            _head("Nominated Node", wide=True),
            _head("Readiness Gates", wide=True),
        ),
        lambda pod, now: pod_columns.row(pod, lambda text: age(text, now)),
    ),
    registry.NODES.resource: Columns(
        (
            NAME,
            _head("Status"),
            _head("Roles"),
            AGE,
            _head("Version"),
            _head("Internal-IP", wide=True),
            _head("External-IP", wide=True),
            _head("OS-Image", wide=True),
            _head("Kernel-Version", wide=True),
            _head("Container-Runtime", wide=True),
        ),
        _node,
    ),
    registry.NAMESPACES.resource: Columns(
        (NAME, _head("Status"), AGE), _named(lambda value: _texts(value, "status", "phase"))
    ),
    registry.SERVICES.resource: Columns(
        (
            NAME,
            _head("Type"),
            _head("Cluster-IP"),
            _head("External-IP"),
            _head("Port(s)"),
            AGE,
            _head("Selector", wide=True),
        ),
        _service,
    ),
    registry.CONFIGMAPS.resource: Columns(
        _DATA, _named(lambda value: _count(value, "data", "binaryData"))
    ),
    registry.SECRETS.resource: Columns(
        (NAME, _head("Type"), _head("Data", "integer"), AGE),
        _named(lambda value: value.get("type", ""), lambda value: _count(value, "data")),
    ),
    registry.SERVICE_ACCOUNTS.resource: Columns(
        (NAME, _head("Secrets", "integer"), AGE),
        _named(lambda value: _count(value, "secrets")),
    ),
    registry.CLAIMS.resource: Columns(
        (
            NAME,
            _head("Status"),
            _head("Volume"),
            _head("Capacity"),
            _head("Access Modes"),
            _head("StorageClass"),
            _head("VolumeAttributesClass"),
            AGE,
            _head("VolumeMode", wide=True),
        ),
        _claim,
    ),
    registry.VOLUMES.resource: Columns(
        (
            NAME,
            _head("Capacity"),
            _head("Access Modes"),
            _head("Reclaim Policy"),
            _head("Status"),
            _head("Claim"),
            _head("StorageClass"),
            _head("VolumeAttributesClass"),
            _head("Reason"),
            AGE,
            _head("VolumeMode", wide=True),
        ),
        _volume,
    ),
    registry.STORAGE_CLASSES.resource: Columns(
        (
            NAME,
            _head("Provisioner"),
            _head("ReclaimPolicy"),
            _head("VolumeBindingMode"),
            _head("AllowVolumeExpansion", "boolean"),
            AGE,
        ),
        _storage_class,
    ),
    registry.EVENTS.resource: Columns(
        (
            _head("Last Seen"),
            _head("Type"),
            _head("Reason"),
            _head("Object"),
            _head("Subobject", wide=True),
            _head("Source", wide=True),
            _head("Message"),
            _head("First Seen", wide=True),
            _head("Count", "integer", wide=True),
            NAME._replace(priority=1),
        ),
        _event,
    ),
    registry.PRIORITY_CLASSES.resource: Columns(
        (
            NAME,
            _head("Value", "integer"),
            _head("Global-Default", "boolean"),
            AGE,
            _head("PreemptionPolicy"),
        ),
        _priority_class,
    ),
    registry.LEASES.resource: Columns(
        (NAME, _head("Holder"), AGE),
        _named(lambda value: value.get("spec", {}).get("holderIdentity", "")),
    ),
    registry.DISRUPTION_BUDGETS.resource: Columns(
        (
            NAME,
            _head("Min Available"),
            _head("Max Unavailable"),
            _head("Allowed Disruptions", "integer"),
            AGE,
        ),
        _budget,
    ),
    registry.DEFINITIONS.resource: Columns((NAME, _head("Created At", "date")), _definition),
    **dict.fromkeys(
        (registry.MUTATING_WEBHOOKS.resource, registry.VALIDATING_WEBHOOKS.resource),
        Columns((NAME, _head("Webhooks", "integer"), AGE), _named(_webhooks)),
    ),
}

"""The kinds that the API serves, as data.

Everything generic (storage, verbs, watches, discovery) reads this table; what is special
about a kind is in its rules (``rules.py``), found by the same key.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

Object = dict[str, Any]


class Field(NamedTuple):
    """Something a field selector may ask for."""

    path: tuple[str, ...]
    absent: str = ""
    """What counts as its value where there is none."""

    def of(self, value: object) -> str:
        """What is compared: text, ``true``, ``false`` or a number."""
        for step in self.path:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, str):
            return sys.intern(value)  # a few values, each in many objects
        if value is None:
            return self.absent
        return str(value).lower() if isinstance(value, bool) else str(value)


def _fields(*paths: str) -> dict[str, Field]:
    return {path: Field(tuple(path.split("."))) for path in paths}


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of object, and how it is reached."""

    group: str
    version: str
    plural: str
    name: str
    """As in an object's ``kind``."""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    status: bool = False
    """Whether ``/status`` is written apart from the rest."""
    subresources: tuple[str, ...] = ()
    """Others than status."""
    generation: bool = False
    """Whether ``metadata.generation`` counts changes of the spec."""
    needs_version: bool = False
    """Whether a PUT without a resource version is refused."""
    fields: Mapping[str, Field] = field(default_factory=dict)
    """What field selectors may name, besides the name and namespace."""
    max_age: float | None = None
    """Seconds after which an object is dropped, or None for never."""

    @property
    def resource(self) -> str:
        """Its key here and its name in messages: ``pods``, ``leases.coordination.k8s.io``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """As in an object's ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        """The name in lower case."""
        return self.name.lower()


NAMESPACES: Final = Kind(
    "",
    "v1",
    "namespaces",
    "Namespace",
    namespaced=False,
    short_names=("ns",),
    status=True,
    fields=_fields("status.phase"),
)
NODES: Final = Kind(
    "",
    "v1",
    "nodes",
    "Node",
    namespaced=False,
    short_names=("no",),
    status=True,
    fields={"spec.unschedulable": Field(("spec", "unschedulable"), absent="false")},
)
PODS: Final = Kind(
    "",
    "v1",
    "pods",
    "Pod",
    short_names=("po",),
    status=True,
    subresources=("binding", "eviction", "log"),
    generation=True,
    fields=_fields(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    )
    | {"spec.hostNetwork": Field(("spec", "hostNetwork"), absent="false")},
)
SERVICES: Final = Kind(
    "",
    "v1",
    "services",
    "Service",
    short_names=("svc",),
    status=True,
    fields=_fields("spec.clusterIP", "spec.type"),
)
CONFIGMAPS: Final = Kind("", "v1", "configmaps", "ConfigMap", short_names=("cm",))
SECRETS: Final = Kind("", "v1", "secrets", "Secret", fields=_fields("type"))
SERVICE_ACCOUNTS: Final = Kind(
    "", "v1", "serviceaccounts", "ServiceAccount", short_names=("sa",)
)
CLAIMS: Final = Kind(
    "",
    "v1",
    "persistentvolumeclaims",
    "PersistentVolumeClaim",
    short_names=("pvc",),
    status=True,
)
VOLUMES: Final = Kind(
    "",
    "v1",
    "persistentvolumes",
    "PersistentVolume",
    namespaced=False,
    short_names=("pv",),
    status=True,
)
STORAGE_CLASSES: Final = Kind(
    "storage.k8s.io",
    "v1",
    "storageclasses",
    "StorageClass",
    namespaced=False,
    short_names=("sc",),
)
DISRUPTION_BUDGETS: Final = Kind(
    "policy",
    "v1",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
    short_names=("pdb",),
    status=True,
    generation=True,
)
EVENTS: Final = Kind(
    "",
    "v1",
    "events",
    "Event",
    short_names=("ev",),
    fields=_fields(
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "type",
    )
    | {"source": Field(("source", "component"))},
    max_age=3600.0,
)
PRIORITY_CLASSES: Final = Kind(
    "scheduling.k8s.io",
    "v1",
    "priorityclasses",
    "PriorityClass",
    namespaced=False,
    short_names=("pc",),
)
LEASES: Final = Kind("coordination.k8s.io", "v1", "leases", "Lease", needs_version=True)
MUTATING_WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING_WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)

BUILT_IN: Final = (
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    CONFIGMAPS,
    SECRETS,
    SERVICE_ACCOUNTS,
    CLAIMS,
    VOLUMES,
    STORAGE_CLASSES,
    DISRUPTION_BUDGETS,
    EVENTS,
    PRIORITY_CLASSES,
    LEASES,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
)


class Registry:
    """The kinds served now, by where their paths lead."""

    def __init__(self, kinds: Iterable[Kind] = BUILT_IN) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Serve one more kind."""
        self._kinds[kind.group, kind.version, kind.plural] = kind

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind served there."""
        return self._kinds.get((group, version, plural))

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def groups(self) -> dict[str, list[str]]:
        """The versions of each group, the core group being the empty text."""
        groups: dict[str, list[str]] = {}
        for group, version, _ in self._kinds:
            versions = groups.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        return groups

    def of(self, group: str, version: str) -> list[Kind]:
        """The kinds of one group and version."""
        return [
            kind
            for kind in self._kinds.values()
            if (kind.group, kind.version) == (group, version)
        ]

"""The kinds that the API serves, as data: those built in, and those that are defined.

Everything generic (storage, verbs, watches, discovery) reads this table; what is special
about a kind is in its rules (``hekla.local.rules``), found by the same key.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from hekla.local.schemas.structural import Structural

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


class Column(NamedTuple):
    """A column of ``kubectl get``, as a definition of a kind declares it."""

    name: str
    type: str
    path: str
    """Where its value stands, as a JSONPath."""
    format: str = ""
    description: str = ""
    priority: int = 0
    """Above 0: shown with ``-o wide`` only."""


@dataclass(slots=True, eq=False)
class Kind:
    """One kind of object at one version, and how it is reached.

    What is built in never changes. A kind that somebody defined stays the same ``Kind`` while
    its definition changes, so that whoever holds it sees the newest.
    """

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
    categories: tuple[str, ...] = ()
    singular: str = ""
    list_name: str = ""
    """The kind of a list of it."""
    schema: Structural | None = None
    """What its objects must look like, if somebody defined it."""
    columns: tuple[Column, ...] = ()
    """Of a kind that somebody defined."""
    closed: str = ""
    """Why no more objects can be made, if none can."""

    def __post_init__(self) -> None:
        self.singular = self.singular or self.name.lower()
        self.list_name = self.list_name or f"{self.name}List"

    @property
    def resource(self) -> str:
        """Its key here and its name in messages: ``pods``, ``leases.coordination.k8s.io``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """As in an object's ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """Its name in messages about objects that are wrong: ``Job.batch.volcano.sh``."""
        return f"{self.name}.{self.group}" if self.group else self.name

    def become(self, other: Kind) -> None:
        """Take over everything that ``other`` says, for the definition has changed."""
        for each in dataclasses.fields(self):
            setattr(self, each.name, getattr(other, each.name))


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
    categories=("all",),
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
    categories=("all",),
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
    categories=("api-extensions",),
)
VALIDATING_WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
    categories=("api-extensions",),
)

DEFINITIONS: Final = Kind(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
    short_names=("crd", "crds"),
    status=True,
    generation=True,
    categories=("api-extensions",),
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
    DEFINITIONS,
)


class Registry:
    """The kinds served now, by where their paths lead.

    A kind may be served in several versions. Its objects are kept in one of them, and it is
    that ``Kind`` that they are found under and that an iteration gives.
    """

    def __init__(self, kinds: Iterable[Kind] = BUILT_IN) -> None:
        self._served: dict[tuple[str, str, str], Kind] = {}
        self._kept: dict[str, Kind] = {}
        self._by_name: dict[tuple[str, str], Kind] = {}
        self.revision = 0
        """Counts the changes of what is served."""
        for kind in kinds:
            self._kept[kind.resource] = kind
            self._serve(kind)

    def define(self, kept: Kind, served: Sequence[Kind]) -> Kind:
        """Serve a kind that somebody defined, or what its definition has become.

        Returns:
            What its objects are found under: ``kept``, or what stood for it before.
        """
        before = {kind.version: kind for kind in self.versions(kept.resource)}
        standing = self._kept.get(kept.resource)
        self.withdraw(kept.resource)
        if standing is not None:
            standing.become(kept)
            kept = standing
        self._kept[kept.resource] = kept
        for kind in served:
            known = before.get(kind.version)
            if kind.version == kept.version:
                self._serve(kept)
            elif known is None or known is kept:
                self._serve(kind)
            else:
                known.become(kind)
                self._serve(known)
        return kept

    def withdraw(self, resource: str) -> None:
        """Serve a kind no more."""
        self._kept.pop(resource, None)
        for kind in self.versions(resource):
            del self._served[kind.group, kind.version, kind.plural]
            del self._by_name[kind.api_version, kind.name]
        self.revision += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind served there."""
        return self._served.get((group, version, plural))

    def named(self, api_version: str, name: str) -> Kind | None:
        """The kind that objects state like this."""
        return self._by_name.get((api_version, name))

    def kept(self, kind: Kind) -> Kind:
        """What the objects of ``kind``, which is any version of it, are found under."""
        return self._kept.get(kind.resource, kind)

    def versions(self, resource: str) -> list[Kind]:
        """All versions in which a kind is served."""
        return [kind for kind in self._served.values() if kind.resource == resource]

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._kept.values()))

    def groups(self) -> dict[str, list[str]]:
        """The versions of each group, the preferred first, the core group being ''."""
        groups: dict[str, list[str]] = {}
        for group, version, _ in self._served:
            versions = groups.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        return {
            group: sorted(versions, key=_precedence, reverse=True)
            for group, versions in groups.items()
        }

    def of(self, group: str, version: str) -> list[Kind]:
        """The kinds of one group and version."""
        return [
            kind
            for kind in self._served.values()
            if (kind.group, kind.version) == (group, version)
        ]

    def _serve(self, kind: Kind) -> None:
        self._served[kind.group, kind.version, kind.plural] = kind
        self._by_name[kind.api_version, kind.name] = kind
        self.revision += 1


_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_MATURITY: Final = {"alpha": 1, "beta": 2, None: 3}


def _precedence(version: str) -> tuple[int, int, int]:
    """What orders versions: v2 before v1, v1 before v1beta2, v1beta1 before v1alpha1."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return 0, 0, 0
    return _MATURITY[found[2]], int(found[1]), int(found[3] or 0)

"""How strategic merge patches treat the lists of each kind. Pure data.

A field that is not here is replaced as a whole if it is a list or a scalar, and merged if it
is an object: what merge patches do, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hekla.local.kinds import registry


@dataclass(frozen=True, slots=True)
class Merging:
    """How one field is merged, and what lies below it."""

    merged: bool = False
    """Whether a list is merged, item by item."""
    key: str = ""
    """The field by which items of a list are told apart; empty for a list of scalars."""
    replaced: bool = False
    """Whether an object is replaced as a whole."""
    fields: Mapping[str, Merging] = field(default_factory=dict)


PLAIN: Final = Merging()


def _by(key: str, **fields: Merging) -> Merging:
    return Merging(merged=True, key=key, fields=fields)


def _object(**fields: Merging) -> Merging:
    return Merging(fields=fields)


_SCALARS: Final = Merging(merged=True)
_METADATA: Final = _object(ownerReferences=_by("uid"), finalizers=_SCALARS)
_CONDITIONS: Final = _by("type")
_CONTAINERS: Final = _by(
    "name",
    ports=_by("containerPort"),
    env=_by("name"),
    volumeMounts=_by("mountPath"),
    volumeDevices=_by("devicePath"),
)
_POD_SPEC: Final = _object(
    volumes=_by("name"),
    initContainers=_CONTAINERS,
    containers=_CONTAINERS,
    ephemeralContainers=_CONTAINERS,
    imagePullSecrets=_by("name"),
    hostAliases=_by("ip"),
    topologySpreadConstraints=_by("topologyKey"),
    schedulingGates=_by("name"),
    resourceClaims=_by("name"),
)
_SPECIAL: Final[Mapping[str, Mapping[str, Merging]]] = {
    registry.PODS.resource: {
        "spec": _POD_SPEC,
        "status": _object(
            conditions=_CONDITIONS,
            podIPs=_by("ip"),
            hostIPs=_by("ip"),
            resourceClaimStatuses=_by("name"),
        ),
    },
    registry.NODES.resource: {
        "spec": _object(podCIDRs=_SCALARS),
        "status": _object(conditions=_CONDITIONS, addresses=_by("type")),
    },
    registry.NAMESPACES.resource: {"status": _object(conditions=_CONDITIONS)},
    registry.SERVICES.resource: {
        "spec": _object(ports=_by("port")),
        "status": _object(conditions=_CONDITIONS),
    },
    registry.SERVICE_ACCOUNTS.resource: {"secrets": _by("name")},
    registry.CLAIMS.resource: {"status": _object(conditions=_CONDITIONS)},
    registry.DISRUPTION_BUDGETS.resource: {
        "spec": _object(selector=Merging(replaced=True)),
        "status": _object(conditions=_CONDITIONS),
    },
    registry.MUTATING_WEBHOOKS.resource: {"webhooks": _by("name")},
    registry.VALIDATING_WEBHOOKS.resource: {"webhooks": _by("name")},
}


def merging_of(resource: str) -> Merging:
    """How the objects of a kind are merged."""
    return Merging(fields={"metadata": _METADATA, **_SPECIAL.get(resource, {})})

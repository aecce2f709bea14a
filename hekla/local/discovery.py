"""What the API says about itself: version, groups, kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hekla.local.registry import Kind, Registry

_VERBS: Final = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)
_SUBRESOURCES: Final[Mapping[str, tuple[str | None, Sequence[str]]]] = {
    "status": (None, ("get", "patch", "update")),
    "binding": ("Binding", ("create",)),
    "eviction": ("Eviction", ("create",)),
    "log": (None, ("get",)),
}
_OTHER_GROUPS: Final = {"eviction": {"group": "policy", "version": "v1"}}
VERSION: Final[dict[str, Any]] = {
    "major": "1",
    "minor": "33",
    "gitVersion": "v1.33.0+hekla",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}


def page(registry: Registry, path: str) -> dict[str, Any] | None:
    """The discovery document at ``path``, or None."""
    groups = registry.groups()
    found: dict[str, Any] | None = None
    match path.strip("/").split("/"):
        case ["version"]:
            found = VERSION
        case ["api"]:
            found = {
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [],
            }
        case ["api", "v1"]:
            found = _resources(registry, "", "v1")
        case ["apis"]:
            listed = [_group(registry, group) for group in groups if group]
            found = {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", group] if group in groups:
            found = {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, group)}
        case ["apis", group, version] if version in groups.get(group, []):
            found = _resources(registry, group, version)
    return found


def _group(registry: Registry, group: str) -> dict[str, Any]:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for version in registry.groups()[group]
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resources(registry: Registry, group: str, version: str) -> dict[str, Any]:
    listed: list[dict[str, Any]] = []
    for kind in registry.of(group, version):
        listed.append(
            {
                "name": kind.plural,
                "singularName": kind.singular,
                "namespaced": kind.namespaced,
                "kind": kind.name,
                "verbs": list(_VERBS),
                "shortNames": list(kind.short_names),
                "categories": list(kind.categories),
            }
        )
        listed += _parts(kind)
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": listed,
    }


def _parts(kind: Kind) -> list[dict[str, Any]]:
    names = (("status",) if kind.status else ()) + kind.subresources
    return [
        {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": _SUBRESOURCES[name][0] or kind.name,
            "verbs": list(_SUBRESOURCES[name][1]),
            **_OTHER_GROUPS.get(name, {}),
        }
        for name in names
    ]

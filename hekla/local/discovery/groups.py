"""What the API says about itself: version, groups, kinds; in one document or in many."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from hekla.local.answers.forms import JSON
from hekla.local.kinds.registry import Kind, Registry

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
_AGGREGATED: Final = "apidiscovery.k8s.io"
_FORMS: Final = ("v2", "v2beta1")
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
VERSION: Final[dict[str, Any]] = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0+hekla",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": f"linux/{_MACHINES.get(platform.machine(), platform.machine())}",
}


class Document(NamedTuple):
    """A page as it is answered."""

    body: bytes
    content_type: str = JSON
    headers: Sequence[tuple[bytes, bytes]] = ()


class Discovery:
    """The pages, made when they are asked for and kept until other kinds are served."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._revision = registry.revision
        self._kept: dict[tuple[str, str], Document | None] = {}

    def page(self, path: str, accept: str) -> Document | None:
        """The document at ``path``, or None."""
        if self._revision != self._registry.revision:
            self._revision = self._registry.revision
            self._kept.clear()
        path = path.strip("/")
        form = _aggregated_form(accept) if path in {"api", "apis"} else ""
        if (path, form) in self._kept:
            return self._kept[path, form]
        if form:
            body = _aggregated(self._registry, form, core=path == "api")
            kind = f"{JSON};g={_AGGREGATED};v={form};as=APIGroupDiscoveryList"
            found: Document | None = Document(orjson.dumps(body), kind)
        else:
            plain = _plain(self._registry, path)
            found = None if plain is None else Document(orjson.dumps(plain))
        if found is not None:
            self._kept[path, form] = found
        return found


def _aggregated_form(accept: str) -> str:
    """The version of the one document that a client prefers; empty if it wants many."""
    for part in accept.split(","):
        words = {word.strip() for word in part.split(";")}
        for version in _FORMS:
            if {f"g={_AGGREGATED}", f"v={version}", "as=APIGroupDiscoveryList"} <= words:
                return version
        if JSON in words and len(words) == 1:
            return ""
    return ""


def _plain(registry: Registry, path: str) -> dict[str, Any] | None:
    groups = registry.groups()
    found: dict[str, Any] | None = None
    match path.split("/"):
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
            listed = [_group(group, versions) for group, versions in groups.items() if group]
            found = {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", group] if group in groups:
            about = _group(group, groups[group])
            found = {"kind": "APIGroup", "apiVersion": "v1", **about}
        case ["apis", group, version] if version in groups.get(group, []):
            found = _resources(registry, group, version)
    return found


def _group(group: str, names: Sequence[str]) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group}/{name}", "version": name} for name in names]
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
                **_extra_names(kind),
            }
        )
        listed += [
            {
                "name": f"{kind.plural}/{name}",
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": named or kind.name,
                "verbs": list(verbs),
                **_OTHER_GROUPS.get(name, {}),
            }
            for name, named, verbs in _parts(kind)
        ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": listed,
    }


def _aggregated(registry: Registry, form: str, *, core: bool) -> dict[str, Any]:
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "resources": [_resource(kind) for kind in registry.of(group, version)],
                    "freshness": "Current",
                }
                for version in versions
            ],
        }
        for group, versions in registry.groups().items()
        if core is (group == "")
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{_AGGREGATED}/{form}",
        "metadata": {},
        "items": items,
    }


def _resource(kind: Kind) -> dict[str, Any]:
    own = {"group": kind.group, "version": kind.version, "kind": kind.name}
    found: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": own,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(_VERBS),
        **_extra_names(kind),
    }
    parts = [
        {
            "subresource": name,
            "responseKind": own
            | ({} if named is None else {"kind": named})
            | _OTHER_GROUPS.get(name, {}),
            "verbs": list(verbs),
        }
        for name, named, verbs in _parts(kind)
    ]
    return found | ({"subresources": parts} if parts else {})


def _extra_names(kind: Kind) -> dict[str, list[str]]:
    listed = {"shortNames": kind.short_names, "categories": kind.categories}
    return {key: list(names) for key, names in listed.items() if names}


def _parts(kind: Kind) -> Iterable[tuple[str, str | None, Sequence[str]]]:
    """The subresources: name, kind if it is another, verbs."""
    for name in (("status",) if kind.status else ()) + kind.subresources:
        yield name, *_SUBRESOURCES[name]

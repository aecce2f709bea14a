"""Volumes of a pod, and where its containers have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hekla.api.fields import shown
from hekla.domain import paths, quantity, syntax
from hekla.domain.errors import InvalidError
from services.webhook.rules.pods.shapes import Part

_HOST_PATH_TYPES: Final = (
    "DirectoryOrCreate",
    "Directory",
    "FileOrCreate",
    "File",
    "Socket",
    "CharDevice",
    "BlockDevice",
)
_PROPAGATION: Final = ("None", "HostToContainer", "Bidirectional")
_PROJECTED: Final = (
    "configMap",
    "secret",
    "downwardAPI",
    "serviceAccountToken",
    "clusterTrustBundle",
    "podCertificate",
)
_LARGEST_MODE: Final = 0o777


def check(spec: Part) -> frozenset[str]:
    """Check a pod's volumes; their names."""
    names: set[str] = set()
    for volume in spec.parts("volumes"):
        name = volume.text("name", required=True, check=syntax.label_error)
        if name and name in names:
            volume.wrong(f"is the name of another volume too: {shown(name)}", "name")
        names.add(name)
        _source(volume)
    return frozenset(names)


def check_mounts(container: Part, volumes: frozenset[str]) -> None:
    """Check where a container has volumes."""
    seen: set[str] = set()
    for mount in container.parts("volumeMounts"):
        name = mount.text("name", required=True)
        path = mount.text("mountPath", required=True, check=_mount_path_error)
        if path and path in seen:
            mount.wrong(f"is the path of another mount too: {shown(path)}", "mountPath")
        seen.add(path)
        if name and name not in volumes:
            mount.wrong(f"must be the name of a volume of the pod, is {shown(name)}", "name")
        mount.boolean("readOnly")
        mount.one_of("mountPropagation", _PROPAGATION)
        inner = mount.text("subPath", check=_inner_path_error)
        if inner and mount.text("subPathExpr"):
            mount.wrong("must not be set beside subPath", "subPathExpr")
    for device in container.parts("volumeDevices"):
        name = device.text("name", required=True)
        device.text("devicePath", required=True)
        if name and name not in volumes:
            device.wrong(f"must be the name of a volume of the pod, is {shown(name)}", "name")


def mounts(template: Mapping[str, Any] | None, path: str) -> Iterator[tuple[str, str]]:
    """Where containers of a template have volumes, each with the place that says so."""
    spec = Part(template or {}, path, []).part("spec")
    for container in spec.parts("containers") if spec is not None else ():
        for mount in container.parts("volumeMounts"):
            yield mount.text("mountPath"), mount.at("mountPath")


def _source(volume: Part) -> None:
    sources = [
        key for key, value in volume.value.items() if key != "name" and value is not None
    ]
    if len(sources) > 1:
        names = paths.printable(", ".join(sorted(sources)))[:80]
        volume.wrong(f"must have one source, has {names}")
    for key in sources:
        source = volume.part(key)
        check_source = _SOURCES.get(key)
        if source is not None and check_source is not None:
            check_source(source)


def _empty_dir(source: Part) -> None:
    limit = source.value.get("sizeLimit")
    if limit is not None:
        try:
            if quantity.parse(limit) < 0:
                source.wrong(f"must be >= 0, is {shown(limit)}", "sizeLimit")
        except InvalidError as error:
            source.wrong(str(error), "sizeLimit")
    source.text("medium")


def _host_path(source: Part) -> None:
    path = source.text("path", required=True)
    if ".." in path.split("/"):
        source.wrong(f"must not contain '..', is {shown(path)}", "path")
    source.one_of("type", _HOST_PATH_TYPES)


def _config_map(source: Part) -> None:
    source.text("name", required=True, check=syntax.subdomain_error)
    _items(source)


def _secret(source: Part) -> None:
    source.text("secretName", required=True, check=syntax.subdomain_error)
    _items(source)


def _downward(source: Part) -> None:
    _mode(source, "defaultMode")
    for item in source.parts("items"):
        item.text("path", required=True, check=_inner_path_error)
        if not (item.value.get("fieldRef") or item.value.get("resourceFieldRef")):
            item.wrong("must have a fieldRef or a resourceFieldRef")


def _claim(source: Part) -> None:
    source.text("claimName", required=True, check=syntax.subdomain_error)
    source.boolean("readOnly")


def _nfs(source: Part) -> None:
    source.text("server", required=True)
    source.text("path", required=True)


def _csi(source: Part) -> None:
    source.text("driver", required=True)


def _ephemeral(source: Part) -> None:
    template = source.part("volumeClaimTemplate")
    if template is None or template.part("spec") is None:
        source.wrong("is required", "volumeClaimTemplate", "spec")


def _projected(source: Part) -> None:
    _mode(source, "defaultMode")
    for each in source.parts("sources"):
        given = [key for key in _PROJECTED if each.value.get(key) is not None]
        if len(given) != 1:
            each.wrong(f"must have one of {', '.join(_PROJECTED)}; has {len(given)}")
        for key in given:
            part = each.part(key)
            if part is not None and key in {"configMap", "secret"}:
                part.text("name", required=True, check=syntax.subdomain_error)
                _items(part)


def _items(source: Part) -> None:
    _mode(source, "defaultMode")
    for item in source.parts("items"):
        item.text("key", required=True)
        item.text("path", required=True, check=_inner_path_error)
        _mode(item, "mode")


def _mode(holder: Part, key: str) -> None:
    holder.integer(key, minimum=0, maximum=_LARGEST_MODE)


def _mount_path_error(path: str) -> str | None:
    return "must not contain ':'" if ":" in path else None


def _inner_path_error(path: str) -> str | None:
    if path.startswith("/") or ".." in path.split("/"):
        return "must be a path inside the volume, without '..'"
    return None


_SOURCES: Final[dict[str, Any]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "configMap": _config_map,
    "secret": _secret,
    "downwardAPI": _downward,
    "persistentVolumeClaim": _claim,
    "nfs": _nfs,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "projected": _projected,
}

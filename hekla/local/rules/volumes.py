"""The API server's side of a pod's volumes: defaults and checks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hekla.domain import syntax
from hekla.domain.errors import Violation
from hekla.local.kinds.registry import Object

_MODE: Final = 0o644
_MODES: Final = ("configMap", "secret", "downwardAPI", "projected")
_NAMED: Final[Mapping[str, str]] = {
    "configMap": "name",
    "secret": "secretName",
    "persistentVolumeClaim": "claimName",
    "hostPath": "path",
}
_HOST_PATHS: Final = (
    "",
    "DirectoryOrCreate",
    "Directory",
    "FileOrCreate",
    "File",
    "Socket",
    "CharDevice",
    "BlockDevice",
)


def defaults(spec: Object) -> None:
    """Fill in what the API server fills in, in place."""
    for volume in _objects(spec.get("volumes")):
        if not volume.keys() - {"name"}:
            volume["emptyDir"] = {}
        for kind in _MODES:
            if isinstance(volume.get(kind), dict):
                volume[kind].setdefault("defaultMode", _MODE)
        if isinstance(volume.get("hostPath"), dict):
            volume["hostPath"].setdefault("type", "")


def check(spec: Object) -> Iterator[Violation]:
    """All that is wrong with the volumes of a pod, and with where they are mounted."""
    volumes = spec.get("volumes") or []
    names: set[str] = set()
    if not isinstance(volumes, list):
        yield Violation("spec.volumes", "Invalid value: must be a list")
        volumes = []
    for index, volume in enumerate(volumes):
        path = f"spec.volumes[{index}]"
        if not isinstance(volume, dict):
            yield Violation(path, "Invalid value: must be an object")
            continue
        yield from _name(volume.get("name", ""), f"{path}.name", names)
        yield from _volume(volume, path)
    for field in ("initContainers", "containers"):
        for index, container in enumerate(_objects(spec.get(field))):
            path = f"spec.{field}[{index}].volumeMounts"
            yield from _mounts(container.get("volumeMounts") or [], path, names)


def _name(name: object, path: str, names: set[str]) -> Iterator[Violation]:
    wrong = syntax.label_error(name) if isinstance(name, str) else "must be a string"
    if name == "":
        yield Violation(path, "Required value")
    elif wrong or not isinstance(name, str):
        yield Violation(path, f"Invalid value: {name!r}: {wrong}")
    elif name in names:
        yield Violation(path, f"Duplicate value: {name!r}")
    else:
        names.add(name)


def _volume(volume: Object, path: str) -> Iterator[Violation]:
    kinds = sorted(volume.keys() - {"name"})
    if len(kinds) > 1:
        yield Violation(
            f"{path}.{kinds[1]}", "Forbidden: may not specify more than 1 volume type"
        )
        return
    for kind in kinds:
        source, at = volume[kind], f"{path}.{kind}"
        if not isinstance(source, dict):
            yield Violation(at, "Invalid value: must be an object")
            continue
        if kind in _NAMED:
            yield from _required(source, _NAMED[kind], at)
        yield from _mode(source, "defaultMode", at)
        yield from _items(source.get("items"), f"{at}.items", told=kind == "downwardAPI")
        if kind == "projected":
            yield from _projected(source, at)
        if kind == "hostPath" and source.get("type", "") not in _HOST_PATHS:
            supported = ", ".join(f'"{known}"' for known in _HOST_PATHS)
            why = f"Unsupported value: {source['type']!r}: supported values: {supported}"
            yield Violation(f"{at}.type", why)


def _projected(source: Object, at: str) -> Iterator[Violation]:
    listed = source.get("sources") or []
    if not isinstance(listed, list):
        yield Violation(f"{at}.sources", "Invalid value: must be a list")
        return
    for index, part in enumerate(listed):
        path = f"{at}.sources[{index}]"
        if not isinstance(part, dict) or len(part) != 1:
            yield Violation(path, "Invalid value: must have exactly one source")
            continue
        [(kind, inner)] = part.items()
        if not isinstance(inner, dict):
            yield Violation(f"{path}.{kind}", "Invalid value: must be an object")
            continue
        if kind in {"configMap", "secret"}:
            yield from _required(inner, "name", f"{path}.{kind}")
        told = kind == "downwardAPI"
        yield from _items(inner.get("items"), f"{path}.{kind}.items", told=told)


def _items(items: object, path: str, *, told: bool) -> Iterator[Violation]:
    if items is None:
        return
    if not isinstance(items, list):
        yield Violation(path, "Invalid value: must be a list")
        return
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        if not isinstance(item, dict):
            yield Violation(at, "Invalid value: must be an object")
            continue
        yield from _required(item, "path", at)
        if item.get("path"):
            yield from _inside(item["path"], f"{at}.path")
        yield from _mode(item, "mode", at)
        if not told:
            yield from _required(item, "key", at)
            continue
        references = [item.get(field) for field in ("fieldRef", "resourceFieldRef")]
        wanted = [each for each in references if isinstance(each, dict)]
        if len(wanted) != 1:
            why = "Required value: one of fieldRef and resourceFieldRef is required"
            yield Violation(at, why)
        elif "fieldRef" in item:
            yield from _required(item["fieldRef"], "fieldPath", f"{at}.fieldRef")
        else:
            yield from _required(item["resourceFieldRef"], "resource", f"{at}.resourceFieldRef")


def _mounts(mounts: object, path: str, names: set[str]) -> Iterator[Violation]:
    if not isinstance(mounts, list):
        yield Violation(path, "Invalid value: must be a list")
        return
    taken: set[str] = set()
    for index, mount in enumerate(mounts):
        at = f"{path}[{index}]"
        if not isinstance(mount, dict):
            yield Violation(at, "Invalid value: must be an object")
            continue
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        yield from _required(mount, "name", at)
        if name and name not in names:
            yield Violation(f"{at}.name", f"Not found: {name!r}")
        yield from _required(mount, "mountPath", at)
        if target in taken:
            yield Violation(f"{at}.mountPath", f"Invalid value: {target!r}: must be unique")
        elif isinstance(target, str):
            taken.add(target)
            if target and not target.startswith("/"):
                why = f"Invalid value: {target!r}: must be an absolute path here"
                yield Violation(f"{at}.mountPath", why)
        for field in ("subPath", "subPathExpr"):
            if mount.get(field):
                yield from _inside(mount[field], f"{at}.{field}")
        if mount.get("subPath") and mount.get("subPathExpr"):
            why = "Invalid value: subPathExpr and subPath are mutually exclusive"
            yield Violation(f"{at}.subPathExpr", why)
        if not isinstance(mount.get("readOnly", False), bool):
            yield Violation(f"{at}.readOnly", "Invalid value: must be true or false")


def _required(value: Object, field: str, path: str) -> Iterator[Violation]:
    found = value.get(field, "")
    if found == "":
        yield Violation(f"{path}.{field}", "Required value")
    elif not isinstance(found, str) or "\0" in found:
        yield Violation(f"{path}.{field}", f"Invalid value: {found!r}: must be a string")


def _inside(path: object, at: str) -> Iterator[Violation]:
    if not isinstance(path, str) or "\0" in path:
        yield Violation(at, f"Invalid value: {path!r}: must be a string")
    elif path.startswith("/"):
        yield Violation(at, f"Invalid value: {path!r}: must be a relative path")
    elif ".." in path.split("/"):
        yield Violation(at, f"Invalid value: {path!r}: must not contain '..'")


def _mode(value: Object, field: str, path: str) -> Iterator[Violation]:
    mode = value.get(field, 0)
    if not isinstance(mode, int) or isinstance(mode, bool) or not 0 <= mode <= 0o777:
        why = f"Invalid value: {mode!r}: must be a number between 0 and 0777 (octal)"
        yield Violation(f"{path}.{field}", why)


def _objects(listed: Any) -> Iterable[Object]:
    return (
        [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    )

"""The volumes of a pod: what is in them, and where its containers find them.

Each is a folder of the pod's own, but for claims and host paths, which outlive it. What comes
from objects is written once, when the pod starts.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from hekla.local.kinds.registry import CLAIMS, CONFIGMAPS, SECRETS, VOLUMES, Kind, Object
from hekla.local.runtimes import environment
from hekla.local.runtimes.environment import ConfigError, Lookup, Place
from hekla.local.runtimes.sandbox import Mount

FILLED: Final = ("configMap", "secret", "downwardAPI", "projected")
"""The kinds whose files come from objects; they are read-only."""
_MODE: Final = 0o644
_TOKENS: Final = ("serviceAccountToken", "clusterTrustBundle", "podCertificate")
_HOST_PATHS: Final[Mapping[str, Callable[[Path], bool]]] = {
    "Directory": Path.is_dir,
    "File": Path.is_file,
    "Socket": Path.is_socket,
    "CharDevice": Path.is_char_device,
    "BlockDevice": Path.is_block_device,
}


class File(NamedTuple):
    """One file of a volume."""

    content: bytes
    mode: int


Files = dict[str, File]


class Volumes:
    """The volumes of one pod, in its folder."""

    def __init__(self, pod: Object, folder: Path, place: Place, lookup: Lookup) -> None:
        self._pod = pod
        self._folder = folder
        self._place = place
        self._lookup = lookup
        self._sources: dict[str, Path] = {}

    def prepare(self) -> None:
        """Make what is not there yet.

        Raises:
            ConfigError: an object is missing, or a volume is of a kind that is not served.
            OSError: the machine does not let us.
        """
        for volume in self._pod["spec"].get("volumes") or []:
            name = volume["name"]
            if name not in self._sources:
                try:
                    self._sources[name] = self._prepared(volume)
                except ConfigError as error:
                    raise ConfigError(f'volume "{name}": {error}') from error

    def mounts(self, container: Object, variables: Mapping[str, str]) -> list[Mount]:
        """What a container sees where.

        Raises:
            ConfigError: a path leads out of its volume.
            OSError: the machine does not let us.
        """
        found = []
        kinds = {volume["name"]: volume for volume in self._pod["spec"].get("volumes") or []}
        for mount in container.get("volumeMounts") or []:
            name = mount["name"]
            source = self._sources[name]
            below = mount.get("subPath") or environment.expand(
                mount.get("subPathExpr") or "", variables
            )
            if below:
                source = _sub_path(source, below)
            read_only = bool(mount.get("readOnly")) or _read_only(kinds[name])
            found.append(Mount(str(source), os.path.normpath(mount["mountPath"]), read_only))
        return found

    def _prepared(self, volume: Object) -> Path:
        folder = self._folder / str(volume["name"])
        if "hostPath" in volume:
            return _host_path(volume["hostPath"])
        if "persistentVolumeClaim" in volume:
            return _claimed(volume["persistentVolumeClaim"]["claimName"], self._lookup)
        if folder.is_dir():  # from before a restart of ours
            return folder
        draft = folder.with_name(f".{folder.name}")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        draft.chmod(0o777)
        if "emptyDir" not in volume:
            for path, file in files(volume, self._pod, self._place, self._lookup).items():
                target = draft / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.content)
                target.chmod(file.mode)
            draft.chmod(0o755)
        draft.replace(folder)
        return folder


def missing(pod: Object, place: Place, lookup: Lookup) -> str:
    """What keeps the volumes of a pod from being made now; empty if nothing does."""
    for volume in pod["spec"].get("volumes") or []:
        try:
            if "persistentVolumeClaim" in volume:
                _volume_of(volume["persistentVolumeClaim"]["claimName"], lookup)
            elif not {"emptyDir", "hostPath"} & volume.keys():
                files(volume, pod, place, lookup)
        except ConfigError as error:
            return f'volume "{volume["name"]}": {error}'
    return ""


class _From(NamedTuple):
    """What the files of a pod's volumes are made from."""

    pod: Object
    place: Place
    lookup: Lookup


def files(volume: Object, pod: Object, place: Place, lookup: Lookup) -> Files:
    """The files of a volume that comes from objects, by their paths in it.

    Raises:
        ConfigError: something is missing, or not served.
    """
    origin = _From(pod, place, lookup)
    for kind in FILLED:
        if kind in volume:
            source = volume[kind]
            mode = source.get("defaultMode", _MODE)
            if kind != "projected":
                return _projection(kind, source, mode, origin)
            found: Files = {}
            for part in source.get("sources") or []:
                for each, inner in part.items():
                    found |= _projection(each, inner, mode, origin)
            return found
    kinds = ", ".join(sorted(volume.keys() - {"name"}))
    raise ConfigError(f"{kinds} is not supported by the local cluster")


def _projection(kind: str, source: Object, mode: int, origin: _From) -> Files:
    if kind == "configMap":
        return _of_object(CONFIGMAPS, source.get("name", ""), source, mode, origin.lookup)
    if kind == "secret":
        name = source.get("secretName") or source.get("name", "")
        return _of_object(SECRETS, name, source, mode, origin.lookup)
    if kind == "downwardAPI":
        return dict(_told(source.get("items") or [], mode, origin.pod, origin.place))
    why = "there are no logins" if kind in _TOKENS else "no such source"
    raise ConfigError(f"{kind} is not supported by the local cluster: {why}")


def _of_object(kind: Kind, name: str, source: Object, mode: int, lookup: Lookup) -> Files:
    found = lookup(kind, name)
    optional = bool(source.get("optional"))
    if found is None and not optional:
        raise ConfigError(f'{kind.singular} "{name}" not found')
    data = _contents(kind, found or {})
    items = source.get("items")
    if items is None:
        return {key: File(content, mode) for key, content in data.items()}
    chosen: Files = {}
    for item in items:
        if item["key"] in data:
            chosen[item["path"]] = File(data[item["key"]], item.get("mode", mode))
        elif not optional:
            raise ConfigError(f"references non-existent {kind.singular} key: {item['key']}")
    return chosen


def _contents(kind: Kind, value: Object) -> dict[str, bytes]:
    data: dict[str, str] = value.get("data") or {}
    if kind is SECRETS:
        return {key: base64.b64decode(text) for key, text in data.items()}
    binary: dict[str, str] = value.get("binaryData") or {}
    plain = {key: text.encode() for key, text in data.items()}
    return plain | {key: base64.b64decode(text) for key, text in binary.items()}


def _told(
    items: list[Object], mode: int, pod: Object, place: Place
) -> Iterator[tuple[str, File]]:
    containers = {
        container["name"]: container
        for field in ("initContainers", "containers")
        for container in pod["spec"].get(field) or []
    }
    for item in items:
        if "fieldRef" in item:
            text = environment.field(item["fieldRef"]["fieldPath"], pod, place)
        else:
            reference = item["resourceFieldRef"]
            container = containers.get(reference.get("containerName", ""))
            if container is None:
                raise ConfigError(f"no container {reference.get('containerName', '')!r}")
            text = environment.resource(reference, container, place)
        yield item["path"], File(text.encode(), item.get("mode", mode))


def _read_only(volume: Object) -> bool:
    claim: dict[str, Any] = volume.get("persistentVolumeClaim") or {}
    return bool(claim.get("readOnly")) or any(kind in volume for kind in FILLED)


def _sub_path(volume: Path, below: str) -> Path:
    found = (volume / below).resolve()
    if not found.is_relative_to(volume.resolve()):
        raise ConfigError(f"subPath {below!r} leads out of its volume")
    if not found.exists():
        found.mkdir(parents=True)
    return found


def _host_path(source: Object) -> Path:
    path, type_ = Path(str(source["path"])), source.get("type") or ""
    if type_ in {"", "DirectoryOrCreate"} and not path.exists():
        path.mkdir(parents=True)
    elif type_ == "FileOrCreate" and not path.exists():
        path.touch(0o644)
    wanted = type_.removesuffix("OrCreate")
    if wanted and not _HOST_PATHS[wanted](path):
        raise ConfigError(f"hostPath type check failed: {path} is not of the type {wanted}")
    return path


def _claimed(claim: str, lookup: Lookup) -> Path:
    folder = Path(_volume_of(claim, lookup))
    if not folder.is_dir():
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    return folder


def _volume_of(claim: str, lookup: Lookup) -> str:
    """The folder that a claim stands for."""
    found = lookup(CLAIMS, claim)
    if found is None:
        raise ConfigError(f'persistentvolumeclaim "{claim}" not found')
    name = found["spec"].get("volumeName", "")
    volume = lookup(VOLUMES, name) if name else None
    if found.get("status", {}).get("phase") != "Bound" or volume is None:
        raise ConfigError(f'persistentvolumeclaim "{claim}" is not bound')
    path = volume["spec"].get("hostPath", {}).get("path")
    if not path:
        raise ConfigError(f'persistentvolume "{name}" is no folder of this machine')
    return str(path)

"""What a container finds in its environment, and the words of its command. Pure."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hekla.domain import names, quantity, resources
from hekla.local.kinds.registry import CONFIGMAPS, SECRETS, Kind, Object
from hekla.local.nodes import presence
from hekla.local.runtimes import strays

CONTAINER: Final = "HEKLA_CONTAINER"
VOLUME: Final = "HEKLA_VOLUME_"
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LONGEST_HOSTNAME: Final = 63
_REFERENCE: Final = re.compile(r"\$(\$|\((?P<name>[^()]*)\))")
_KEYED: Final = re.compile(r"metadata\.(?P<map>labels|annotations)\['(?P<key>[^']+)'\]")

Lookup = Callable[[Kind, str], Object | None]
"""Finds a config map or a secret of the pod's namespace."""


class ConfigError(Exception):
    """The environment refers to what is not there (yet)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a container runs."""

    node: str
    ip: str
    home: str
    """What ``HEKLA_HOME`` says."""
    allocatable: Mapping[str, int]
    """What the node has, for limits that the container does not set."""


def build(
    pod: Object, container: Object, place: Place, work: str, lookup: Lookup
) -> dict[str, str]:
    """The whole environment: nothing of ours leaks into it. ``work`` is the container's folder.

    Raises:
        ConfigError: a value comes from an object or a field that is missing.
    """
    metadata = pod["metadata"]
    environment = {
        "PATH": _PATH,
        "HOME": work,
        "LANG": "C.UTF-8",
        "HOSTNAME": hostname(pod),
    }
    for source in container.get("envFrom") or []:
        environment.update(_from_source(source, lookup))
    for variable in container.get("env") or []:
        value = _value(variable, pod, container, place, lookup)
        if value is not None:
            environment[variable["name"]] = expand(value, environment)
    # Last, so that the pod cannot hide its processes from us.
    return environment | {
        "HEKLA_JOB": _told(metadata, names.JOB_NAME),
        "HEKLA_TASK": _told(metadata, names.TASK_SPEC),
        "HEKLA_INDEX": _told(metadata, names.TASK_INDEX),
        "HEKLA_RUN": _told(metadata, names.RUN),
        CONTAINER: container["name"],
        strays.POD_UID: metadata["uid"],
        strays.HOME: place.home,
    }


def volumes(paths: Mapping[str, str]) -> dict[str, str]:
    """What tells a container where it finds each of its volumes."""
    return {f"{VOLUME}{name.upper().replace('-', '_')}": path for name, path in paths.items()}


def hostname(pod: Object) -> str:
    """What the pod calls its machine."""
    wanted: str = pod["spec"].get("hostname") or pod["metadata"]["name"]
    return wanted[:_LONGEST_HOSTNAME].rstrip("-.")


def words(container: Object, environment: Mapping[str, str]) -> list[str]:
    """The command and its arguments."""
    listed = [*(container.get("command") or []), *(container.get("args") or [])]
    return [expand(word, environment) for word in listed]


def expand(text: str, environment: Mapping[str, str]) -> str:
    """``text`` with ``$(NAME)`` replaced where the name is known; ``$$`` stands for ``$``."""

    def replaced(found: re.Match[str]) -> str:
        if found["name"] is None:
            return "$"
        return environment.get(found["name"], found[0])

    return _REFERENCE.sub(replaced, text)


def _told(metadata: Object, name: str) -> str:
    for source in ("annotations", "labels"):
        if name in metadata.get(source, {}):
            return str(metadata[source][name])
    return ""


def _value(
    variable: Object, pod: Object, container: Object, place: Place, lookup: Lookup
) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return str(variable.get("value", ""))
    try:
        if "fieldRef" in source:
            return field(source["fieldRef"]["fieldPath"], pod, place)
        if "resourceFieldRef" in source:
            return resource(source["resourceFieldRef"], container, place)
        for key, kind in (("configMapKeyRef", CONFIGMAPS), ("secretKeyRef", SECRETS)):
            if key in source:
                return _entry(kind, source[key], lookup)
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"env {variable['name']}: valueFrom cannot be read") from error
    raise ConfigError(f"env {variable['name']}: valueFrom is of no known kind")


def field(path: str, pod: Object, place: Place) -> str:
    """What a pod's field says; a map as lines of ``key="value"``.

    Raises:
        ConfigError: the field is none that may be asked for.
    """
    spec, metadata = pod["spec"], pod["metadata"]
    known = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": place.node,
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.podIP": place.ip,
        "status.podIPs": place.ip,
        "status.hostIP": presence.HOST_IP,
        "status.hostIPs": presence.HOST_IP,
    }
    if path in known:
        return str(known[path])
    if path in {"metadata.labels", "metadata.annotations"}:
        texts = metadata.get(path.removeprefix("metadata."), {})
        return "\n".join(f"{key}={json.dumps(text)}" for key, text in sorted(texts.items()))
    keyed = _KEYED.fullmatch(path)
    if keyed is None:
        raise ConfigError(f"fieldPath {path} is not supported")
    return str(metadata.get(keyed["map"], {}).get(keyed["key"], ""))


def resource(reference: Object, container: Object, place: Place) -> str:
    """An amount that a container asks for or may use, in units of the divisor."""
    which, _, name = reference["resource"].partition(".")
    asked = container.get("resources", {}).get(which, {})
    if name in asked:
        amount = resources.parse_amount(name, asked[name])
    else:
        amount = place.allocatable.get(name, 0) if which == "limits" else 0
    divisor = quantity.parse(reference.get("divisor") or "1")
    if not divisor:
        divisor = quantity.parse("1")
    per_unit = 1000 if name == resources.CPU else 1
    return str(quantity.ceil(quantity.parse(amount) / per_unit / divisor))


def _entry(kind: Kind, reference: Object, lookup: Lookup) -> str | None:
    """One value of a config map or secret; None if it may be missing and is."""
    name, key = reference.get("name", ""), reference["key"]
    found = lookup(kind, name)
    data = _texts(kind, found) if found is not None else {}
    if key in data:
        return data[key]
    if reference.get("optional"):
        return None
    if found is None:
        raise ConfigError(f'{kind.singular} "{name}" not found')
    raise ConfigError(f"couldn't find key {key} in {kind.name} {name}")


def _from_source(source: Any, lookup: Lookup) -> dict[str, str]:
    prefix = source.get("prefix", "")
    for key, kind in (("configMapRef", CONFIGMAPS), ("secretRef", SECRETS)):
        reference = source.get(key)
        if reference is None:
            continue
        found = lookup(kind, reference.get("name", ""))
        if found is None and not reference.get("optional"):
            raise ConfigError(f'{kind.singular} "{reference.get("name", "")}" not found')
        data = _texts(kind, found) if found is not None else {}
        return {f"{prefix}{name}": value for name, value in data.items()}
    return {}


def _texts(kind: Kind, value: Object) -> dict[str, str]:
    data: dict[str, str] = value.get("data") or {}
    if kind is SECRETS:
        return {name: os.fsdecode(base64.b64decode(text)) for name, text in data.items()}
    return data

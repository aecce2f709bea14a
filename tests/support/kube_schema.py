"""Objects held against the types of the official Kubernetes client, without a server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kubernetes.client import models

_PLAIN: Final[Mapping[str, Any]] = {
    "str": str,
    "int": int,
    "bool": bool,
    "float": (int, float),
    "object": (int, str),
}
_LIST: Final = re.compile(r"list\[(.+)\]", re.IGNORECASE)
_DICT: Final = re.compile(r"dict[\[(]\w+, (.+)[\])]", re.IGNORECASE)


def type_name(api_version: str, kind: str) -> str:
    """The client's name of a kind: ``V1Deployment``, ``V1Job``."""
    version = api_version.rpartition("/")[2]
    return f"{version[0].upper()}{version[1:]}{kind}"


def violations(value: Any, kind: str, path: str = "") -> list[str]:
    """What does not fit the type: unknown fields, wrong values, missing ones."""
    if (found := _LIST.fullmatch(kind)) is not None:
        if not isinstance(value, list):
            return [f"{path}: must be a list, is {value!r}"]
        parts = {f"{path}[{index}]": each for index, each in enumerate(value)}
        return _all(parts, found[1])
    if (found := _DICT.fullmatch(kind)) is not None:
        if not isinstance(value, dict):
            return [f"{path}: must be a mapping, is {value!r}"]
        return _all({f"{path}.{key}": each for key, each in value.items()}, found[1])
    if kind in _PLAIN:
        fits = isinstance(value, _PLAIN[kind]) and (kind == "bool") == isinstance(value, bool)
        return [] if fits else [f"{path}: must be {kind}, is {value!r}"]
    return _object(value, kind, path)


def _all(parts: dict[str, Any], kind: str) -> list[str]:
    return [wrong for path, each in parts.items() for wrong in violations(each, kind, path)]


def _object(value: Any, kind: str, path: str) -> list[str]:
    model = getattr(models, kind)
    if not isinstance(value, dict):
        return [f"{path}: must be a {kind}, is {value!r}"]
    types = {model.attribute_map[name]: type_ for name, type_ in model.openapi_types.items()}
    found = [f"{path}.{key}: unknown field" for key in value if key not in types]
    for key, each in value.items():
        if key in types:
            found += violations(each, types[key], f"{path}.{key}")
    if not found:
        arguments = {
            name: value.get(key) for name, key in model.attribute_map.items() if key in value
        }
        try:
            model(**arguments)  # refuses what lacks a field that is required
        except ValueError as error:
            found.append(f"{path}: {error}")
    return found

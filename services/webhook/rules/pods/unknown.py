"""Fields of pod templates that Kubernetes does not know: misspelt, or in the wrong place."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hekla.domain import paths
from hekla.domain.errors import Violation
from services.webhook.rules.pods.fields import TABLE

TEMPLATE: Final = "PodTemplateSpec"
CLAIM: Final = "PersistentVolumeClaimSpec"
MOST: Final = 50
"""So many are told of."""


def _types() -> dict[str, dict[str, str]]:
    """The fields of each type, each with its own type or nothing."""
    types: dict[str, dict[str, str]] = {}
    for word in TABLE.replace("\n  ", " ").splitlines():
        name, *fields = word.split()
        parts = [field.partition(":") for field in fields]
        types[name] = {field: kind for field, _, kind in parts}
    return types


_TYPES: Final[Mapping[str, Mapping[str, str]]] = _types()


def unknown(value: Any, path: str, kind: str = TEMPLATE) -> Iterator[Violation]:
    """Each field below ``path`` that a value of that type does not have."""
    found = _below(value, path, kind)
    for _ in range(MOST):
        violation = next(found, None)
        if violation is None:
            return
        yield violation


def _below(value: Any, path: str, kind: str) -> Iterator[Violation]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _below(item, paths.at(path, index), kind)
    if not isinstance(value, dict):
        return
    fields = _TYPES[kind]
    for key, item in value.items():
        inner = fields.get(key)
        if inner is None:
            yield Violation(paths.at(path, key), _message(kind, key, fields))
        elif inner:
            yield from _below(item, paths.at(path, key), inner)


def _message(kind: str, key: str, fields: Mapping[str, str]) -> str:
    alike = difflib.get_close_matches(key, fields, n=1)
    hint = f"; did you mean {alike[0]}?" if alike else ""
    return f"is no field of a {kind}{hint}"

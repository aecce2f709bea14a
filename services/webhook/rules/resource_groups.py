"""Resource groups: pods that are matched get a place to run from the installation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hekla.api.fields import shown
from hekla.api.reader import Budget, read
from hekla.domain import paths
from hekla.domain.errors import InvalidError, Violation

GROUP: Final = "volcano.sh/resource-group"
"""Annotation that a group without a key of its own matches by its name."""
_NAMESPACE: Final = "namespace"
_ANNOTATION: Final = "annotation"


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """What the pods of one group get."""

    name: str
    key: str
    namespaces: tuple[str, ...]
    annotations: tuple[tuple[str, str], ...]
    scheduler_name: str
    labels: tuple[tuple[str, str], ...]
    tolerations: str
    """A list, as JSON."""
    affinity: str
    """An object as JSON, or nothing."""

    def matches(self, namespace: str, annotations: Mapping[str, str]) -> bool:
        """Whether a pod is of the group."""
        if self.key == _NAMESPACE:
            return namespace in self.namespaces
        if self.key not in {_ANNOTATION, ""}:
            return False
        if any(annotations.get(key, "") == value for key, value in self.annotations):
            return True
        return not self.key and annotations.get(GROUP) == self.name

    def applied(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The spec of a pod of the group."""
        given = dict(spec)
        if self.labels:
            given["nodeSelector"] = {**_object(spec.get("nodeSelector")), **dict(self.labels)}
        if self.affinity and not spec.get("affinity"):
            given["affinity"] = json.loads(self.affinity)
        added = json.loads(self.tolerations)
        if added:
            own = spec.get("tolerations")
            given["tolerations"] = [*(own if isinstance(own, list) else []), *added]
        if self.scheduler_name:
            given["schedulerName"] = self.scheduler_name
        return given


def read_groups(text: str) -> tuple[ResourceGroup, ...]:
    """The groups that a file lists under ``resourceGroups``, in its order.

    Raises:
        InvalidError: with all that is wrong.
    """
    value = read(text, 1, Budget())
    listed = _object(value).get("resourceGroups") or []
    if (value is not None and not isinstance(value, dict)) or not isinstance(listed, list):
        raise InvalidError("must have a list at resourceGroups")
    found, wrong = [], []
    for index, each in enumerate(listed):
        try:
            found.append(_group(each))
        except InvalidError as error:
            place = paths.at("resourceGroups", index)
            wrong.append(Violation(place, str(error)))
    if wrong:
        raise InvalidError.of(wrong)
    return tuple(found)


def _group(given: Any) -> ResourceGroup:
    if not isinstance(given, dict):
        raise InvalidError(f"must be an object, is {shown(given)}")
    of = _object(given.get("object"))
    values = of.get("value") or []
    tolerations = given.get("tolerations") or []
    if not isinstance(values, list) or not isinstance(tolerations, list):
        raise InvalidError("must have lists at object.value and tolerations")
    key = str(of.get("key") or "")
    return ResourceGroup(
        name=str(given.get("resourceGroup") or ""),
        key=key,
        namespaces=tuple(str(value) for value in values) if key == _NAMESPACE else (),
        annotations=_pairs(values) if key != _NAMESPACE else (),
        scheduler_name=str(given.get("schedulerName") or ""),
        labels=tuple(_texts(given.get("labels")).items()),
        tolerations=json.dumps(tolerations),
        affinity=_affinity(given.get("affinity")),
    )


def _pairs(values: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    pairs: dict[str, str] = {}
    for value in values:
        parsed = read(value, 1, Budget()) if isinstance(value, str) else value
        for key, text in _texts(parsed).items():
            pairs.setdefault(key, text)
    return tuple(pairs.items())


def _affinity(given: Any) -> str:
    if given in (None, ""):
        return ""
    try:
        value = json.loads(given) if isinstance(given, str) else given
    except ValueError as error:
        raise InvalidError(f"affinity must be JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidError("affinity must be an object")
    return json.dumps(value)


def _texts(value: Any) -> dict[str, str]:
    return {key: str(item) for key, item in _object(value).items()}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}

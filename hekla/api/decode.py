"""Objects from JSON-like data and back.

``decode`` is strict: what it does not know it refuses, by path, and all that is wrong at
once. It is ``read`` (shape, types, CRD defaults) followed by ``bounds.violations``.
"""

from __future__ import annotations

import difflib
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeVar

import pydantic
from pydantic_core import ErrorDetails

from hekla.api.bounds import violations
from hekla.api.command import Command
from hekla.api.cron_job import CronJob
from hekla.api.fields import Model, shown
from hekla.api.hyper_node import HyperNode
from hekla.api.job import Job
from hekla.api.job_flow import JobFlow
from hekla.api.job_template import JobTemplate
from hekla.api.numatopology import Numatopology
from hekla.api.plain import require_plain
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.domain import names, paths
from hekla.domain.errors import InvalidError, Violation

Object = (
    Job
    | PodGroup
    | Queue
    | JobFlow
    | JobTemplate
    | CronJob
    | Command
    | HyperNode
    | Numatopology
)
M = TypeVar("M", bound=Model)

KINDS: Final[Mapping[tuple[str, str], type[Object]]] = {
    (names.JOB_API_VERSION, "Job"): Job,
    (names.SCHEDULING_API_VERSION, "PodGroup"): PodGroup,
    (names.SCHEDULING_API_VERSION, "Queue"): Queue,
    (names.FLOW_API_VERSION, "JobFlow"): JobFlow,
    (names.FLOW_API_VERSION, "JobTemplate"): JobTemplate,
    (names.JOB_API_VERSION, "CronJob"): CronJob,
    (names.BUS_API_VERSION, "Command"): Command,
    (names.TOPOLOGY_API_VERSION, "HyperNode"): HyperNode,
    (names.NODE_INFO_API_VERSION, "Numatopology"): Numatopology,
}

_SERVER_ONLY: Final = frozenset({"managedFields", "selfLink"})
"""Metadata that servers add to what they show, and that means nothing coming back."""
_MOST_SHOWN: Final = 100
"""Violations told of at once."""


def decode(raw: Any) -> Object:
    """The object that ``raw`` describes, checked but for what admission checks.

    Raises:
        InvalidError: with everything that is wrong.
    """
    found = read(raw)
    wrong = violations(found)
    if wrong:
        raise InvalidError.of(wrong[:_MOST_SHOWN])
    return found


def read(raw: Any) -> Object:
    """The object that ``raw`` describes, with CRD defaults, its bounds not yet checked.

    Raises:
        InvalidError: with everything that is wrong.
    """
    require_plain(raw)
    if not isinstance(raw, Mapping):
        raise InvalidError(f"must be an object, is {shown(raw)}")
    return read_as(_kind(raw), raw)


def read_as(cls: type[M], raw: Any) -> M:
    """As ``read``, for data that is known to be a ``cls`` and to be plain.

    Raises:
        InvalidError: with everything that is wrong.
    """
    try:
        return cls.model_validate(_without_server_only(raw), by_alias=True, by_name=False)
    except pydantic.ValidationError as error:
        raise _as_invalid(error, cls) from None


def encode(model: Model) -> dict[str, Any]:
    """``model`` as Kubernetes writes it; what is absent is left out, zero values are not."""
    return model.model_dump(by_alias=True, exclude_none=True)


def _as_invalid(error: pydantic.ValidationError, cls: type[Model]) -> InvalidError:
    """Pydantic's error in our words."""
    details = error.errors(include_url=False, include_context=False)
    found = [_violation(detail, cls) for detail in details[:_MOST_SHOWN]]
    # Strict and bounded types may each complain of one value.
    return InvalidError.of(list(dict.fromkeys(found)))


def _kind(raw: Mapping[str, Any]) -> type[Object]:
    version, kind = raw.get("apiVersion"), raw.get("kind")
    wrong = [
        Violation(key, "is required" if value is None else f"must be a text, is {shown(value)}")
        for key, value in (("apiVersion", version), ("kind", kind))
        if not isinstance(value, str)
    ]
    if wrong:
        raise InvalidError.of(wrong)
    found = KINDS.get((str(version), str(kind)))
    if found is not None:
        return found
    for known_version, known_kind in KINDS:
        if kind == known_kind:
            message = f"must be {known_version} for a {kind} of Volcano, is {shown(version)}"
            raise InvalidError.of([Violation("apiVersion", message)])
    kinds = ", ".join(known for _, known in KINDS)
    message = f"must be one of {kinds}, is {shown(kind)} of {shown(version)}"
    raise InvalidError.of([Violation("kind", message)])


def _without_server_only(raw: Any) -> Any:
    metadata = raw.get("metadata") if isinstance(raw, Mapping) else None
    if not isinstance(metadata, Mapping) or _SERVER_ONLY.isdisjoint(metadata):
        return raw
    kept = {key: value for key, value in metadata.items() if key not in _SERVER_ONLY}
    return {**raw, "metadata": kept}


_EXPECTED: Final[Mapping[str, str]] = {
    "string_type": "must be a text",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "greater_than_equal": "must be an integer of 32 bits",
    "less_than_equal": "must be an integer of 32 bits",
}


def _violation(detail: ErrorDetails, cls: type[Model]) -> Violation:
    place = detail["loc"]
    path = paths.at("", *place)
    kind = detail["type"]
    if kind == "extra_forbidden":
        return Violation(path, f"is no field of this kind{_suggestion(cls, place)}")
    expected = _EXPECTED.get(kind)
    if expected is None:
        return Violation(path, detail["msg"])
    return Violation(path, f"{expected}, is {shown(detail['input'])}")


def _suggestion(cls: type[Model], place: tuple[int | str, ...]) -> str:
    *outer, name = place
    within: type[Model] | None = cls
    for key in outer:
        if within is not None and isinstance(key, str):
            within = _parts(within).get(key, within)
    known = [info.alias or "" for info in within.model_fields.values()] if within else []
    close = difflib.get_close_matches(str(name), known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


@cache
def _parts(cls: type[Model]) -> Mapping[str, type[Model]]:
    """The models that the fields of ``cls`` hold, by alias."""
    found = {}
    for name, hint in typing.get_type_hints(cls).items():
        part = _model_in(hint)
        if part is not None and name in cls.model_fields:
            found[cls.model_fields[name].alias or name] = part
    return found


def _model_in(hint: Any) -> type[Model] | None:
    if isinstance(hint, type) and issubclass(hint, Model):
        return hint
    inner = (_model_in(part) for part in typing.get_args(hint))
    return next((part for part in inner if part is not None), None)

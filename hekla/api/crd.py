"""The kinds as CustomResourceDefinitions, drawn from the models.

A schema says what a definition can say: types, bounds, defaults. What it cannot say (labels
that must be labels, graphs without cycles) is the webhook's. Pod templates and claims are kept
as they are given; the webhook judges them.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple, Union

from pydantic.fields import FieldInfo

from hekla.api.command import Command
from hekla.api.cron_job import CronJob
from hekla.api.fields import DURATION, QUANTITY, TIMESTAMP, Bound, Model
from hekla.api.hyper_node import HyperNode, MemberSelector
from hekla.api.job import Job, mount_path_error, task_name_error
from hekla.api.job_flow import JobFlow, Patch
from hekla.api.job_template import JobTemplate
from hekla.api.meta import ObjectMeta, reason_error
from hekla.api.numatopology import Numatopology
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.domain import syntax

Schema = dict[str, Any]

_SCALARS: Final[Mapping[type, Schema]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int32"},
    str: {"type": "string"},
}
_ANYTHING: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}
_QUANTITY: Final[Schema] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    ),
    "x-kubernetes-int-or-string": True,
}
_SUBDOMAIN: Final = {
    "maxLength": syntax.SUBDOMAIN_LENGTH,
    "pattern": f"^{syntax.SUBDOMAIN.pattern}$",
}
_LABEL: Final = {"maxLength": syntax.LABEL_LENGTH, "pattern": f"^{syntax.LABEL.pattern}$"}

CHECKS: Final[Mapping[Callable[[str], str | None] | None, Schema]] = {
    syntax.subdomain_error: _SUBDOMAIN,
    syntax.label_error: _LABEL,
    task_name_error: _LABEL,  # an empty name has been given another by then
    syntax.qualified_name_error: {"maxLength": 317},
    mount_path_error: {"pattern": "^[^:]+$"},
    reason_error: {"pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
    DURATION.check: {},
    TIMESTAMP.check: {"format": "date-time"},
}
"""What a schema can say of a check on texts."""

_RULES: Final[Mapping[type[Model], Sequence[Mapping[str, str]]]] = {
    MemberSelector: [
        {
            "rule": (
                "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0)"
                " + (has(self.labelMatch) ? 1 : 0) == 1"
            ),
            "message": "must have one of exactMatch, regexMatch and labelMatch",
        }
    ]
}


class Column(NamedTuple):
    """A column of ``kubectl get``."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False
    """Shown with ``-o wide`` only."""


_AGE: Final = Column("AGE", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True)
class Definition:
    """How one kind is served."""

    model: type[Model]
    plural: str
    short_names: Sequence[str] = ()
    namespaced: bool = True
    status: bool = True
    """Whether the status is written apart from the rest."""
    columns: Sequence[Column] = ()

    @property
    def kind(self) -> str:
        """As objects state it."""
        return str(self.model.model_fields["kind"].default)

    @property
    def group(self) -> str:
        """The API group."""
        return self._api_version[0]

    @property
    def version(self) -> str:
        """The only version that is served."""
        return self._api_version[1]

    @property
    def name(self) -> str:
        """The definition's own name."""
        return f"{self.plural}.{self.group}"

    @property
    def _api_version(self) -> list[str]:
        return str(self.model.model_fields["api_version"].default).split("/")

    def manifest(self) -> dict[str, Any]:
        """The CustomResourceDefinition."""
        version: dict[str, Any] = {
            "name": self.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema(self.model)},
            "subresources": {"status": {}} if self.status else {},
        }
        if self.columns:
            version["additionalPrinterColumns"] = [_column(column) for column in self.columns]
        names: dict[str, Any] = {
            "kind": self.kind,
            "listKind": f"{self.kind}List",
            "plural": self.plural,
            "singular": self.kind.lower(),
        }
        if self.short_names:
            names["shortNames"] = list(self.short_names)
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": self.group,
                "names": names,
                "scope": "Namespaced" if self.namespaced else "Cluster",
                "versions": [version],
            },
        }


DEFINITIONS: Final[Sequence[Definition]] = (
    Definition(
        Job,
        "jobs",
        ("vcjob", "vj"),
        columns=(
            Column("STATUS", ".status.state.phase"),
            Column("minAvailable", ".status.minAvailable", "integer"),
            Column("RUNNINGS", ".status.running", "integer"),
            _AGE,
            Column("QUEUE", ".spec.queue", wide=True),
        ),
    ),
    Definition(CronJob, "cronjobs", ("cronvcjob", "cronvj")),
    Definition(Command, "commands", status=False),
    Definition(
        PodGroup,
        "podgroups",
        ("pg", "podgroup-v1beta1"),
        status=False,
        columns=(
            Column("STATUS", ".status.phase"),
            Column("minMember", ".spec.minMember", "integer"),
            Column("RUNNINGS", ".status.running", "integer"),
            _AGE,
            Column("QUEUE", ".spec.queue", wide=True),
        ),
    ),
    Definition(
        Queue,
        "queues",
        ("q", "queue-v1beta1"),
        namespaced=False,
        columns=(Column("PARENT", ".spec.parent"),),
    ),
    Definition(
        JobFlow,
        "jobflows",
        ("jf",),
        columns=(Column("Status", ".status.state.phase"), _AGE._replace(name="Age")),
    ),
    Definition(JobTemplate, "jobtemplates", ("jt",)),
    Definition(
        HyperNode,
        "hypernodes",
        ("hn",),
        namespaced=False,
        columns=(
            Column("Tier", ".spec.tier"),
            Column("TierName", ".spec.tierName"),
            Column("NodeCount", ".status.nodeCount", "integer"),
            _AGE._replace(name="Age"),
        ),
    ),
    Definition(Numatopology, "numatopologies", ("numatopo",), namespaced=False, status=False),
)


def schema(model: type[Model]) -> Schema:
    """The structural schema of a kind's objects."""
    properties: Schema = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    }
    whole = _object(model, defaults=True)
    for name, found in whole["properties"].items():
        # What a controller writes has no defaults: nobody may have written it yet.
        properties.setdefault(
            name, found if name != "status" else _without_defaults(model, name)
        )
    return whole | {"properties": properties}


def _without_defaults(model: type[Model], name: str) -> Schema:
    hint = typing.get_type_hints(model, include_extras=True)[name]
    return _typed(hint, defaults=False)


def _object(model: type[Model], *, defaults: bool) -> Schema:
    if model is ObjectMeta:
        return {"type": "object"}
    # A patch names what it changes: a default would change what nobody named.
    defaults = defaults and model is not Patch
    hints = typing.get_type_hints(model, include_extras=True)
    properties: Schema = {}
    required = []
    for name, info in model.model_fields.items():
        key = info.alias or name
        properties[key] = _typed(hints[name], defaults=defaults)
        default = _default(info) if defaults else None
        if default is not None:
            properties[key]["default"] = default
        if any(bound.required for bound in _bounds(hints[name])):
            required.append(key)
    found: Schema = {
        "type": "object",
        "description": inspect.cleandoc(model.__doc__ or ""),
        "properties": properties,
    }
    if required:
        found["required"] = required
    if model in _RULES:
        found["x-kubernetes-validations"] = [dict(rule) for rule in _RULES[model]]
    return found


def _default(info: FieldInfo) -> Any:
    """A default that says something: not what is as good as absent."""
    if info.default_factory is not None or info.default is None:
        return None
    return info.default if info.default or info.default is False else None


def _bounds(hint: Any) -> list[Bound]:
    if typing.get_origin(hint) is Annotated:
        inner, *metadata = typing.get_args(hint)
        return [item for item in metadata if isinstance(item, Bound)] + _bounds(inner)
    if typing.get_origin(hint) in (Union, types.UnionType):
        return [bound for inner in typing.get_args(hint) for bound in _bounds(inner)]
    return []


def _typed(hint: Any, *, defaults: bool) -> Schema:
    plain = _plain(hint)
    found = _shape(plain, defaults=defaults)
    for bound in reversed(_bounds(hint)):  # what stands further out has the last word
        found |= _bounded(bound)
        if bound.each is QUANTITY:
            found["additionalProperties"] = dict(_QUANTITY)
        elif bound.each is not None:
            inner = "items" if "items" in found else "additionalProperties"
            found[inner] = found[inner] | _bounded(bound.each)
    return found


def _plain(hint: Any) -> Any:
    """The type without what is said beside it, and without None."""
    if typing.get_origin(hint) is Annotated:
        return _plain(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (Union, types.UnionType):
        [inner] = [one for one in typing.get_args(hint) if one is not type(None)]
        return _plain(inner)
    return hint


def _shape(plain: Any, *, defaults: bool) -> Schema:
    if isinstance(plain, type) and issubclass(plain, Model):
        return _object(plain, defaults=defaults)
    if plain in _SCALARS:
        return dict(_SCALARS[plain])
    arguments = typing.get_args(plain)
    if typing.get_origin(plain) is list:
        return {"type": "array", "items": _typed(arguments[0], defaults=defaults)}
    if typing.get_origin(plain) is dict:
        if arguments[1] is Any:
            return {"type": "object"} | _ANYTHING
        value = _typed(arguments[1], defaults=defaults)
        return {"type": "object", "additionalProperties": value}
    raise TypeError(f"no schema for {plain}")


def _bounded(bound: Bound) -> Schema:
    limits = {
        "minimum": bound.minimum,
        "maximum": bound.maximum,
        "minLength": bound.min_length,
        "maxLength": bound.max_length,
        "minItems": bound.min_items,
        "enum": None if bound.one_of is None else [str(one) for one in bound.one_of],
    }
    found = {key: value for key, value in limits.items() if value is not None}
    return found if bound.check is None else CHECKS[bound.check] | found


def _column(column: Column) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.path,
    }
    return found | {"priority": 1} if column.wide else found

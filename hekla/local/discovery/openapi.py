"""OpenAPI v3, as much as clients ask for.

kubectl looks here whether the server checks fields itself, and ``kubectl explain`` reads the
schemas. Those of defined kinds are told whole; those of built-in ones say which fields there
are, not what they mean. v2 is empty: kubectl looks there for what v3 lacks, and learns that
there is none.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

from hekla.local.answers.forms import JSON
from hekla.local.discovery import core_fields
from hekla.local.discovery.groups import Document
from hekla.local.kinds.registry import Kind, Registry

ALL: Final = "openapi/"
ROOT: Final = "openapi/v3"
_V2: Final = "openapi/v2"
_V2_FORM: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2_EMPTY: Final = b"\x0a\x032.0"
"""``swagger: 2.0`` and no more."""
_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SMALL: Final = 2_000
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_TIME: Final = {"type": "string", "format": "date-time"}
_NAMES: Final = {"type": "array", "items": _TEXT}
_OWNERS: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["apiVersion", "kind", "name", "uid"],
        "properties": {
            "apiVersion": _TEXT,
            "kind": _TEXT,
            "name": _TEXT,
            "uid": _TEXT,
            "controller": {"type": "boolean"},
            "blockOwnerDeletion": {"type": "boolean"},
        },
    },
}
_OBJECT_META: Final = {
    "description": "What every object has: names, labels, owners.",
    "type": "object",
    "properties": {
        key: {**schema, "description": says}
        for key, schema, says in (
            ("name", _TEXT, "Unique among the objects of a kind in a namespace."),
            ("generateName", _TEXT, "The beginning of a name that the server completes."),
            ("namespace", _TEXT, "Where the object is; empty for kinds of the whole cluster."),
            ("labels", _TEXTS, "Keys and values by which objects are selected."),
            ("annotations", _TEXTS, "Keys and values for tools; nothing is selected by them."),
            ("ownerReferences", _OWNERS, "The objects without which this one is deleted."),
            ("finalizers", _NAMES, "Who must be done before a deleted object goes."),
            ("uid", _TEXT, "What tells objects of one name apart. Set by the server."),
            ("resourceVersion", _TEXT, "Changes with every write. Set by the server."),
            ("generation", {"type": "integer"}, "Counts the changes of what is wanted."),
            ("creationTimestamp", _TIME, "When it was made. Set by the server."),
            ("deletionTimestamp", _TIME, "When it was or is to be deleted."),
            (
                "deletionGracePeriodSeconds",
                {"type": "integer"},
                "How long it may take to end. Set by the server.",
            ),
        )
    },
}
_OF_EVERY_OBJECT: Final[Mapping[str, Any]] = {
    "apiVersion": {**_TEXT, "description": "The group and version of the kind."},
    "kind": {**_TEXT, "description": "What this is."},
    "metadata": {
        "description": "Names, labels, owners.",
        "allOf": [{"$ref": f"#/components/schemas/{_METADATA}"}],
    },
}
_ELSEWHERE: Final = "See https://kubernetes.io/docs/reference/kubernetes-api/"
_FIELD_VALIDATION: Final = [
    {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}},
    {"name": "dryRun", "in": "query", "schema": {"type": "string"}},
]


class OpenApi:
    """The documents, made when they are asked for and kept until other kinds are served."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._revision = -1
        self._index = b""
        self._documents: dict[str, tuple[str, bytes]] = {}

    def page(
        self, path: str, *, wanted_hash: str, compressed: bool, known: str
    ) -> Document | None:
        """The document at ``path``, or None.

        Args:
            path: without slashes at the ends.
            wanted_hash: which document the client believes to be there; it may keep that one.
            compressed: whether the client takes gzip.
            known: the ``If-None-Match`` of a client that has a document already.
        """
        if self._revision != self._registry.revision:
            self._read()
        if path == _V2:
            return Document(_V2_EMPTY, _V2_FORM)
        if path == ROOT:
            return Document(self._index)
        found = self._documents.get(path.removeprefix(f"{ROOT}/"))
        if found is None:
            return None
        digest, body = found
        headers = [(b"etag", f'"{digest}"'.encode()), (b"vary", b"Accept-Encoding")]
        if wanted_hash == digest:
            headers += [
                (b"cache-control", b"public, max-age=31536000, immutable"),
                (b"expires", b"Fri, 31 Dec 2100 23:59:59 GMT"),
            ]
        if known.strip('"') == digest:
            return Document(b"", JSON, headers)
        if compressed and len(body) > _SMALL:
            headers.append((b"content-encoding", b"gzip"))
            body = gzip.compress(body, 6, mtime=0)
        return Document(body, JSON, headers)

    def _read(self) -> None:
        self._revision = self._registry.revision
        self._documents.clear()
        paths = {}
        for group, versions in self._registry.groups().items():
            for version in versions:
                path = f"apis/{group}/{version}" if group else f"api/{version}"
                body = orjson.dumps(_document(self._registry.of(group, version)))
                digest = hashlib.sha256(body).hexdigest()[:32]
                self._documents[path] = digest, body
                paths[path] = {"serverRelativeURL": f"/{ROOT}/{path}?hash={digest}"}
        self._index = orjson.dumps({"paths": paths})


def _document(kinds: list[Kind]) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {_METADATA: _OBJECT_META}
    for kind in kinds:
        group = f"apis/{kind.group}" if kind.group else "api"
        where = "/namespaces/{namespace}" if kind.namespaced else ""
        all_of_them = f"/{group}/{kind.version}{where}/{kind.plural}"
        operation = {
            "x-kubernetes-group-version-kind": _named(kind),
            "parameters": _FIELD_VALIDATION,
            "responses": {},
        }
        paths[all_of_them] = {
            "get": operation | {"x-kubernetes-action": "list"},
            "post": operation | {"x-kubernetes-action": "post"},
        }
        paths[f"{all_of_them}/{{name}}"] = {
            "get": operation | {"x-kubernetes-action": "get"},
            "put": operation | {"x-kubernetes-action": "put"},
            "patch": operation | {"x-kubernetes-action": "patch"},
        }
        schemas[_component(kind)] = _schema(kind)
        schemas |= _models(kind)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Hekla's local cluster", "version": "v1"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _component(kind: Kind) -> str:
    group = ".".join(reversed(kind.group.split("."))) if kind.group else "io.k8s.api.core"
    return f"{group}.{kind.version}.{kind.name}"


def _models(kind: Kind) -> dict[str, Any]:
    """What the fields of a built-in kind hold, without a word on what it means."""
    found: dict[str, Any] = {}
    waiting = [core_fields.model_of(kind)]
    while waiting:
        model = waiting.pop()
        if model is None or _model_name(model) in found:
            continue
        fields = core_fields.fields_of(model)
        found[_model_name(model)] = {
            "type": "object",
            "properties": {key: _written(text) for key, text in fields.items()},
        }
        waiting += [core_fields.model_in(text) for text in fields.values()]
    found.pop(_METADATA, None)
    return found


def _model_name(model: str) -> str:
    if model == core_fields.METADATA:
        return _METADATA
    return f"io.k8s.api.v1.{model.partition('V1')[2]}"


def _written(text: str) -> dict[str, Any]:
    if text.startswith("["):
        return {"type": "array", "items": _written(text[1:])}
    if text.startswith("{"):
        return {"type": "object", "additionalProperties": _written(text[1:])}
    if core_fields.model_in(text) is not None:
        return {"allOf": [{"$ref": f"#/components/schemas/{_model_name(text)}"}]}
    return {"type": text} if text else {"x-kubernetes-preserve-unknown-fields": True}


def _named(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.name}


def _schema(kind: Kind) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object"}
    if kind.schema is None:
        fields = core_fields.fields_of(core_fields.model_of(kind) or core_fields.METADATA)
        found |= {
            "description": f"A built-in kind, not described here. {_ELSEWHERE}",
            "properties": {
                **{key: _written(text) for key, text in fields.items()},
                **_OF_EVERY_OBJECT,
            },
        }
    else:
        found |= kind.schema.source
        found["properties"] = {**found.get("properties", {}), **_OF_EVERY_OBJECT}
    return found | {"x-kubernetes-group-version-kind": [_named(kind)]}

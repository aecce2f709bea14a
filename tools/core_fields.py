"""Writes the fields of built-in kinds from the Kubernetes client's models, or checks them."""

from __future__ import annotations

import json
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Union

from kubernetes import client
from pydantic import BaseModel

from hekla.local.kinds.registry import BUILT_IN, Kind

FILE: Final = Path("hekla/local/discovery/core_fields.json")
_OTHER_NAMES: Final = {"Event": "CoreV1Event"}
_SCALARS: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}


def drawn() -> str:
    """The text of the file: the model of each kind, and the fields of each model."""
    models: dict[str, dict[str, str]] = {}
    kinds = {kind.resource: _model_of(kind) for kind in BUILT_IN}
    waiting = list(kinds.values())
    while waiting:
        model = waiting.pop()
        if model.__name__ in models:
            continue
        fields = models[model.__name__] = {}
        for name, info in model.model_fields.items():
            text, inner = _described(info.annotation)
            fields[info.serialization_alias or name] = text
            waiting += inner
    return (
        '{\n"kinds": {\n'
        + _lines({resource: model.__name__ for resource, model in kinds.items()})
        + '\n},\n"models": {\n'
        + _lines({name: dict(sorted(fields.items())) for name, fields in models.items()})
        + "\n}\n}\n"
    )


def _lines(members: Mapping[str, Any]) -> str:
    return ",\n".join(
        f"{json.dumps(key)}: {json.dumps(members[key])}" for key in sorted(members)
    )


def _model_of(kind: Kind) -> type[BaseModel]:
    found: type[BaseModel] = getattr(client, _OTHER_NAMES.get(kind.name, f"V1{kind.name}"))
    return found


def _described(annotation: Any) -> tuple[str, list[type[BaseModel]]]:
    """How a field is written, and the models in it.

    ``[string`` is a list of texts, ``{V1Probe`` a map of probes, and the empty text anything.
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _described(arguments[0])
    if origin in (Union, types.UnionType):
        inner = [each for each in arguments if each is not type(None)]
        return _described(inner[0]) if len(inner) == 1 else ("", [])
    if origin in (list, dict):
        text, models = _described(arguments[-1])
        return ("[" if origin is list else "{") + text, models
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.__name__, [annotation]
    return _SCALARS.get(annotation, ""), []


def main(arguments: list[str]) -> int:
    """Write or check; return the exit code."""
    wanted = drawn()
    if "--check" not in arguments:
        FILE.write_text(wanted)
        return 0
    if FILE.read_text() != wanted:
        sys.stderr.write(f"{FILE} is not what the client's models say: run `make fields`\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""The fields of built-in kinds: what a misspelt one is told by, and what ``explain`` shows.

``core_fields.json`` is drawn from the models of the Kubernetes client by ``make fields``. Which
values the fields may have is another matter: that is in the rules of each kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from hekla.local.kinds.registry import Kind
from hekla.local.patches.standard import without_nulls
from hekla.local.schemas.structural import Node

_FILE: Final = Path(__file__).with_name("core_fields.json")
_SCALARS: Final = frozenset({"", "string", "integer", "number", "boolean"})
METADATA: Final = "V1ObjectMeta"


def unknown(kind: Kind, body: bytes, *, patch: bool) -> list[str]:
    """The paths of the fields in ``body`` that objects of a built-in kind do not have.

    In a patch directives such as ``$patch`` are no fields, and a null takes a field away.
    """
    model = _drawn()["kinds"].get(kind.resource)
    value = orjson.loads(body)
    if patch:
        value = without_nulls(value)
    found: list[str] = []
    if model is not None and isinstance(value, dict):
        _nodes()[model].settle(value, "", found)
    if patch:
        found = [path for path in found if not path.rpartition(".")[2].startswith("$")]
    return found


def model_of(kind: Kind) -> str | None:
    """The name of the model of a built-in kind."""
    found: str | None = _drawn()["kinds"].get(kind.resource)
    return found


def fields_of(model: str) -> Mapping[str, str]:
    """The fields of a model and how each is written; see ``tools/core_fields.py``."""
    found: Mapping[str, str] = _drawn()["models"][model]
    return found


def model_in(text: str) -> str | None:
    """The model that a field holds, be it one, a list, or a map of them."""
    inner = text.lstrip("[{")
    return None if inner in _SCALARS else inner


@cache
def _drawn() -> dict[str, Any]:
    drawn: dict[str, Any] = orjson.loads(_FILE.read_bytes())
    return drawn


@cache
def _nodes() -> dict[str, Node]:
    models = _drawn()["models"]
    nodes = {name: Node() for name in models}
    for name, fields in models.items():
        for field, text in fields.items():
            nodes[name].properties[field] = _node(text, nodes)
    return nodes


def _node(text: str, nodes: Mapping[str, Node]) -> Node:
    if text in nodes:
        return nodes[text]
    node = Node()
    if text.startswith("["):
        node.items = _node(text[1:], nodes)
    elif text.startswith("{"):
        node.additional = _node(text[1:], nodes)
    else:
        node.preserve = True
    return node

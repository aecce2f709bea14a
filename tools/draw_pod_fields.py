"""Draws the fields of pod templates from the types of the official Kubernetes client."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubernetes.client import models

ROOTS: Final = ("V1PodTemplateSpec", "V1PersistentVolumeClaimSpec")
_WRAPPED: Final = re.compile(r"(?:List|Dict)\[(?:str, )?(.+)\]")
_WIDTH: Final = 94
_HEAD: Final = '''"""The fields of pod templates and claims in Kubernetes.

Drawn from the official client's types by `make docs`; do not edit.
"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\\
'''


def draw() -> str:
    """The module, as text."""
    lines = [
        textwrap.fill(
            " ".join([_short(name), *fields]), _WIDTH, subsequent_indent="  ", **_WHOLE
        )
        for name, fields in sorted(_types().items())
    ]
    return _HEAD + "\n".join(lines) + '\n"""\n'


_WHOLE: Final[Mapping[str, Any]] = {"break_long_words": False, "break_on_hyphens": False}


def _types() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    left = list(ROOTS)
    while left:
        name = left.pop()
        if name in found:
            continue
        fields = dict(_fields(name))
        found[name] = [
            f"{field}:{_short(kind)}" if kind else field
            for field, kind in sorted(fields.items())
        ]
        left += [kind for kind in fields.values() if kind]
    return found


def _fields(name: str) -> Iterator[tuple[str, str]]:
    """The fields of a type, each with its own type if that has fields."""
    model = getattr(models, name)
    for attribute, written in model.openapi_types.items():
        match = _WRAPPED.fullmatch(written)
        kind = match[1] if match else written
        yield model.attribute_map[attribute], kind if hasattr(models, kind) else ""


def _short(name: str) -> str:
    return name.removeprefix("Core").removeprefix("V1")

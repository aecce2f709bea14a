"""What stands at a path of an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hekla.api.fields import shown
from hekla.domain import paths


def value_at(value: Any, path: str) -> str:
    """The value at ``path`` of JSON-like data, as messages show it; empty if there is none."""
    steps = paths.steps(path)
    if steps is None:
        return ""
    for step in steps:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, Sequence) and not isinstance(value, str) and step.isdecimal():
            index = int(step)
            value = value[index] if index < len(value) else None
        else:
            return ""
    # An empty list is an absent one to messages, and has to be the same at every door.
    return "" if value is None or value == [] else shown(value)

"""What stands at a path of an object."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hekla.api.fields import shown

_KEY: Final = re.compile(
    r"\[(?P<index>[0-9]+)\]|\[(?P<odd>.*?)\](?=$|[.\[])|\.?(?P<plain>[^.\[]+)"
)


def value_at(value: Any, path: str) -> str:
    """The value at ``path`` of JSON-like data, as messages show it; empty if there is none."""
    at = 0
    while at < len(path):
        found = _KEY.match(path, at)
        if found is None:
            return ""
        at = found.end()
        if isinstance(value, Mapping):
            value = value.get(found["plain"] or found["odd"] or found["index"])
        elif isinstance(value, Sequence) and not isinstance(value, str) and found["index"]:
            index = int(found["index"])
            value = value[index] if index < len(value) else None
        else:
            return ""
    # An empty list is an absent one to messages, and has to be the same at every door.
    return "" if value is None or value == [] else shown(value)

"""How a place in an object is written: ``spec.tasks[0].replicas``."""

from __future__ import annotations

import re
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def at(path: str, *keys: str | int) -> str:
    """The place under ``path`` that ``keys`` lead to, one inside the other.

    A key that is no plain word stands in brackets, as an index does:
    ``metadata.labels[volcano.sh/task-spec]``.
    """
    for key in keys:
        if isinstance(key, str) and _PLAIN.fullmatch(key):
            path = f"{path}.{key}" if path else key
        else:
            path = f"{path}[{str(key)[:80]}]"
    return path

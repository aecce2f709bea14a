"""How a place in an object is written: ``spec.tasks[0].replicas``."""

from __future__ import annotations

import re
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def at(path: str, *keys: str | int) -> str:
    """The place under ``path`` that ``keys`` lead to, one inside the other.

    A key that is no plain word stands in brackets, as an index does:
    ``metadata.labels[volcano.sh/task-spec]``. The path is one line, whatever keys there are.
    """
    for key in keys:
        if isinstance(key, str) and _PLAIN.fullmatch(key):
            path = f"{path}.{key}" if path else key
        else:
            path = f"{path}[{printable(str(key))[:80]}]"
    return path


def printable(text: str) -> str:
    """``text`` on one line: what cannot be printed is escaped."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()

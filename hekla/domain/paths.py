"""How a place in an object is written: ``spec.tasks[0].replicas``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_STEP: Final = re.compile(
    r"\[(?P<index>[0-9]+)\]|\[(?P<odd>.*?)\](?=$|[.\[])|\.?(?P<plain>[^.\[]+)"
)
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def at(path: str, *keys: str | int) -> str:
    """The place under ``path`` that ``keys`` lead to, one inside the other.

    A key that is no plain word stands in brackets, as an index does:
    ``metadata.labels[volcano.sh/task-spec]``. The path is one line, whatever keys there are.
    """
    for key in keys:
        step = f"[{key}]" if isinstance(key, int) else _step(key)
        path = f"{path}{step}" if path else step.removeprefix(".")
    return path


@lru_cache(maxsize=4096)
def _step(key: str) -> str:
    return f".{key}" if _PLAIN.fullmatch(key) else f"[{printable(str(key))[:80]}]"


def steps(path: str) -> list[str] | None:
    """The keys and indices that lead to a place, one inside the other; None if it is none."""
    found: list[str] = []
    end = 0
    while end < len(path):
        step = _STEP.match(path, end)
        if step is None:
            return None
        found.append(step["plain"] or step["odd"] or step["index"] or "")
        end = step.end()
    return found


def printable(text: str) -> str:
    """``text`` on one line: what cannot be printed is escaped."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()

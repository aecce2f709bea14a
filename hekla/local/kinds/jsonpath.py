"""The paths that columns of defined kinds are read by: ``.status.conditions[0].type``.

What Kubernetes calls a simple JSON path: fields, indexes, and the choice of list items by one
of their fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

Path = Callable[[Any], Iterable[Any]]
"""The values that stand there."""

_STEP: Final = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\]\\])+)
      | \[(?P<index>-?\d+)\]
      | \[(?P<all>\*)\]
      | \[(?P<quote>['"])(?P<name>(?:\\.|[^\\])+?)(?P=quote)\]
      | \[\?\(\s*@\.(?P<key>[\w.-]+)\s*(?P<operator>==|!=)\s*
            (?P<value>'[^']*'|"[^"]*"|[\w.-]+)\s*\)\]
    """,
    re.VERBOSE,
)


def compiled(text: str) -> Path:
    """The path that ``text`` writes.

    Raises:
        ValueError: it writes none.
    """
    steps: list[Path] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise ValueError(f"is not a simple json path at {text[at : at + 40]!r}")
        steps.append(_step(found))
        at = found.end()
    if not steps:
        raise ValueError("must not be empty")
    return _chain(steps)


def _chain(steps: list[Path]) -> Path:
    def find(value: Any) -> Iterable[Any]:
        values = [value]
        for step in steps:
            values = [inner for outer in values for inner in step(outer)]
        return values

    return find


def _step(found: re.Match[str]) -> Path:
    name = found["field"] or found["name"]
    if name is not None:
        return _field(re.sub(r"\\(.)", r"\1", name))
    if found["index"] is not None:
        return _item(int(found["index"]))
    if found["all"] is not None:
        return _items
    return _chosen(found["key"], found["value"].strip("'\""), equal=found["operator"] == "==")


def _field(name: str) -> Path:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _item(index: int) -> Path:
    return lambda value: (
        [value[index]] if isinstance(value, list) and -len(value) <= index < len(value) else []
    )


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _chosen(key: str, wanted: str, *, equal: bool) -> Path:
    read = _chain([_field(name) for name in key.split(".")])

    def choose(value: Any) -> Iterable[Any]:
        if not isinstance(value, list):
            return []
        return [
            item for item in value if (wanted in [str(each) for each in read(item)]) is equal
        ]

    return choose

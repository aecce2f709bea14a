"""Where in a manifest the fields of an object stand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import yaml

from hekla.domain import paths

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Lines:
    """The lines of one document, which are looked for only when somebody asks."""

    def __init__(self, text: str, first: int, within: Sequence[str] = ()) -> None:
        """``within`` leads from the document to the object."""
        self._text = text
        self._first = first
        self._within = within

    def of(self, path: str) -> int:
        """The line of the field at ``path``, or of the nearest around it that is written."""
        node, line = self._root, self._first
        for step in (*self._within, *(paths.steps(path) or ())):
            found = _step(node, step)
            if found is None:
                break
            node, at = found
            line = self._first + at
        return line

    @cached_property
    def _root(self) -> Any:
        try:
            return yaml.compose(self._text, Loader=_LOADER)
        except (yaml.YAMLError, RecursionError):
            return None  # JSON that is no YAML, as with tabs


def _step(node: Any, step: str) -> tuple[Any, int] | None:
    """What a node has under a key or an index, and the line where it begins."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return value, key.start_mark.line
    elif isinstance(node, yaml.SequenceNode) and step.isdecimal():
        index = int(step)
        if index < len(node.value):
            return node.value[index], node.value[index].start_mark.line
    return None

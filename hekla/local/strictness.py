"""What becomes of fields that nobody knows or that are given twice: ``fieldValidation``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hekla.domain import paths
from hekla.local import errors
from hekla.local.registry import Kind
from hekla.local.routing import Request

STRICT: Final = "Strict"
WARN: Final = "Warn"
IGNORE: Final = "Ignore"
_CHOICES: Final = frozenset({STRICT, WARN, IGNORE})


class Strictness:
    """How one request wants its fields to be looked at. Without a word it is warned."""

    def __init__(self, kind: Kind, request: Request) -> None:
        """Read what the request says.

        Raises:
            ApiError: it says something that is not known.
        """
        self._kind = kind
        self._request = request
        given = request.query.get("fieldValidation", "")
        if given and given not in _CHOICES:
            raise errors.bad_request(
                f"invalid value for fieldValidation: {given[:80]!r}: "
                "must be one of Ignore, Warn, Strict"
            )
        self._says = given or WARN
        self._found: list[str] = []
        # To look for fields that come twice costs, so only those who ask for it pay.
        if given in {STRICT, WARN} and kind.schema is not None and request.method != "PATCH":
            self._found = [f'duplicate field "{path}"' for path in duplicates(request.body)]

    def told(self, unknown: Sequence[str]) -> None:
        """Take note of the fields that are not known.

        Raises:
            ApiError: the request wants to be refused for any.
        """
        found = [f'unknown field "{path}"' for path in unknown] + self._found
        if not found or self._says == IGNORE:
            return
        if self._says == STRICT:
            kind = self._kind
            raise errors.bad_request(
                f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: '
                f"strict decoding error: {', '.join(found)}"
            )
        warnings = self._request.warnings
        warnings += [text for text in found if text not in warnings]


def duplicates(body: bytes) -> list[str]:
    """The paths of the fields that come more than once in a JSON text."""
    twice: dict[int, tuple[object, list[str]]] = {}  # an id is good while its object lives

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            keys = [key for key, _ in pairs]
            twice[id(value)] = value, [key for key in value if keys.count(key) > 1]
        return value

    try:
        whole = json.loads(body, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return []  # it is refused for that
    return list(_paths(whole, "", twice)) if twice else []


def _paths(value: Any, path: str, twice: dict[int, tuple[object, list[str]]]) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (paths.at(path, key) for key in twice.get(id(value), (None, []))[1])
        for key, inner in value.items():
            yield from _paths(inner, paths.at(path, key), twice)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, paths.at(path, index), twice)

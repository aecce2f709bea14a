"""What becomes of fields that nobody knows or that are given twice: ``fieldValidation``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hekla.domain import paths
from hekla.local.discovery import core_fields
from hekla.local.kinds import errors
from hekla.local.kinds.registry import Kind
from hekla.local.serving.routing import JSON_PATCH, Request

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
        # To look more closely costs, so only those who ask for it pay.
        self._closely = given in {STRICT, WARN}

    def told(self, unknown: Sequence[str]) -> None:
        """Take note of the fields that are not known.

        Raises:
            ApiError: the request wants to be refused for any.
        """
        if self._says == IGNORE:
            return
        kind, request = self._kind, self._request
        found = [f'unknown field "{path}"' for path in unknown]
        if self._closely:
            found += self._more()
        if not found:
            return
        if self._says == STRICT:
            raise errors.bad_request(
                f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: '
                f"strict decoding error: {', '.join(found)}"
            )
        warnings = request.warnings
        warnings += [text for text in found if text not in warnings]

    def _more(self) -> list[str]:
        """What only the body tells: fields that come twice, or that no built-in kind has."""
        kind, request = self._kind, self._request
        patch = request.method == "PATCH"
        found = []
        if kind.schema is None and request.content_type != JSON_PATCH:
            paths_ = core_fields.unknown(kind, request.body, patch=patch)
            found = [f'unknown field "{path}"' for path in paths_]
        if not patch:
            found += [f'duplicate field "{path}"' for path in duplicates(request.body)]
        return found


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

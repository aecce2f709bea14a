"""What mutation changed, as a JSON patch (RFC 6902) of the object that was sent. Pure.

General libraries search for what may have moved, which takes seconds on a large job; defaults
only add and replace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Change = dict[str, Any]


def changes(before: Any, after: Any, raw: Any, pointer: str = "") -> Iterator[Change]:
    """Operations that bring into ``raw`` what is different between ``before`` and ``after``.

    ``before`` is what was read from ``raw``: with the defaults of its definition, which are
    added too where nobody did that before; spelled otherwise perhaps, and without what has no
    place in a model, all of which stays in ``raw`` as it is.
    """
    if isinstance(before, dict) and isinstance(after, dict) and isinstance(raw, dict):
        for key in before:
            if key not in after and key in raw:
                yield {"op": "remove", "path": _at(pointer, key)}
        for key, value in after.items():
            place = _at(pointer, key)
            if key not in raw:
                yield {"op": "add", "path": place, "value": value}
            elif key not in before:
                yield {"op": "replace", "path": place, "value": value}
            else:
                yield from changes(before[key], value, raw[key], place)
    elif (
        isinstance(before, list)
        and isinstance(after, list)
        and isinstance(raw, list)
        and len(before) == len(after) == len(raw)
    ):
        for index, (old, new, part) in enumerate(zip(before, after, raw, strict=True)):
            yield from changes(old, new, part, _at(pointer, str(index)))
    elif before != after:
        yield {"op": "replace", "path": pointer, "value": after}


def _at(pointer: str, key: str) -> str:
    return f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"

"""Lists in pages: ``limit`` and ``continue``.

A page goes on after the last key of the one before, over what is there now, and keeps the
first page's resource version: a watch from there replays what the pages missed.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import orjson

from hekla.local import errors
from hekla.local.storage import Entry


class Mark(NamedTuple):
    """Where a page ended."""

    version: int
    namespace: str
    name: str

    def token(self) -> str:
        """As the client sends it back."""
        return base64.urlsafe_b64encode(orjson.dumps(list(self))).decode()


class Page(NamedTuple):
    """Some of a list."""

    entries: Sequence[Entry]
    version: int
    token: str = ""
    remaining: int = 0


def read(token: str) -> Mark | None:
    """The mark that a client sent back; None if it sent none.

    Raises:
        ApiError: it is none of ours.
    """
    if not token:
        return None
    try:
        version, namespace, name = orjson.loads(base64.urlsafe_b64decode(token))
        return Mark(int(version), str(namespace), str(name))
    except (ValueError, TypeError, binascii.Error) as error:
        raise errors.bad_request("continue key is not valid") from error


def page(entries: Sequence[Entry], version: int, limit: int | None, after: Mark | None) -> Page:
    """The part of ``entries``, which are in the order of their names, that comes now."""
    begin = 0
    if after is not None:
        key = (after.namespace, after.name)
        begin = bisect_right(entries, key, key=lambda entry: (entry.namespace, entry.name))
        version = after.version
    if not limit or len(entries) - begin <= limit:
        return Page(entries[begin:], version)
    chosen = entries[begin : begin + limit]
    last = Mark(version, chosen[-1].namespace, chosen[-1].name)
    return Page(chosen, version, last.token(), len(entries) - begin - limit)

"""Lists in pages: ``limit`` and ``continue``.

What the first page was cut from is kept, so that all pages together are the list as it was
then, whatever was written meanwhile. It is kept for a time only, as etcd does.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import orjson

from hekla.local.kinds import errors
from hekla.local.storage.memory import Entry

KEPT_SECONDS: Final = 300.0
KEPT_LISTS: Final = 64


class Page(NamedTuple):
    """Some of a list."""

    entries: Sequence[Entry]
    version: int
    token: str = ""
    remaining: int = 0


class _Kept(NamedTuple):
    """A list of which pages are to come."""

    what: str
    version: int
    entries: Sequence[Entry]
    until: float


class Pages:
    """The lists that are being read in pages."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    def first(
        self, what: str, entries: Sequence[Entry], version: int, limit: int | None
    ) -> Page:
        """The first page of ``entries``, which are what ``what`` asks for."""
        if not limit or len(entries) <= limit:
            return Page(entries, version)
        self._drop_old()
        key = secrets.token_hex(8)
        until = self._clock() + KEPT_SECONDS
        self._kept[key] = kept = _Kept(what, version, entries, until)
        return _page(key, kept, 0, limit)

    def following(self, what: str, token: str, limit: int | None) -> Page:
        """The page that ``token`` asks for.

        Raises:
            ApiError: the token is none of ours, or its list is no longer kept.
        """
        try:
            key, begin = orjson.loads(base64.urlsafe_b64decode(token))
        except (ValueError, TypeError, binascii.Error) as error:
            raise errors.bad_request("continue key is not valid") from error
        if not isinstance(key, str) or not isinstance(begin, int) or begin < 0:
            raise errors.bad_request("continue key is not valid")
        self._drop_old()
        kept = self._kept.get(key)
        if kept is None:
            raise errors.expired(
                "The provided continue parameter is too old to display a consistent list "
                "result: list again without it"
            )
        if kept.what != what:
            raise errors.bad_request("continue key is not valid: it is of another list")
        return _page(key, kept, begin, limit)

    def _drop_old(self) -> None:
        now = self._clock()
        old = [key for key, kept in self._kept.items() if kept.until < now]
        for key in [*old, *list(self._kept)[len(old) : 1 + len(self._kept) - KEPT_LISTS]]:
            del self._kept[key]


def _page(key: str, kept: _Kept, begin: int, limit: int | None) -> Page:
    end = len(kept.entries) if not limit else begin + limit
    left = len(kept.entries) - end
    token = ""
    if left > 0:
        token = base64.urlsafe_b64encode(orjson.dumps([key, end])).decode()
    return Page(kept.entries[begin:end], kept.version, token, max(left, 0))

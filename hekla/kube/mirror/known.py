"""The custom resources of one kind as the cluster has them, as far as is known.

There may be many, and each is looked at rarely: they are kept as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import orjson

from hekla.domain.names import Key
from hekla.kube.mirror.custom import Custom

MOST_REMEMBERED: Final = 10_000


class _Kept(NamedTuple):
    """A custom resource, its object apart from the rest."""

    custom: Custom
    raw: bytes

    @classmethod
    def of(cls, custom: Custom) -> _Kept:
        return cls(replace(custom, raw=_NOTHING), orjson.dumps(custom.raw))

    def whole(self) -> Custom:
        return replace(self.custom, raw=orjson.loads(self.raw))


_NOTHING: Final[dict[str, Any]] = {}


class Known:
    """Custom resources by name, and which were seen to go. Not safe for threads."""

    def __init__(self) -> None:
        self._customs: dict[Key, _Kept] = {}
        self._gone: dict[Key, str] = {}
        self._kept: dict[Key, str] = {}

    def __len__(self) -> int:
        return len(self._customs)

    def uids(self) -> set[str]:
        """The uids of all of them."""
        return {kept.custom.uid for kept in self._customs.values()}

    def __contains__(self, key: Key) -> bool:
        return key in self._customs

    def get(self, key: Key) -> Custom | None:
        """The custom resource of that name, if there is one."""
        kept = self._customs.get(key)
        return kept.whole() if kept is not None else None

    def head(self, key: Key) -> Custom | None:
        """As :meth:`get`, without the object: what it is, and whether it goes."""
        kept = self._customs.get(key)
        return kept.custom if kept is not None else None

    def put(self, custom: Custom) -> bool:
        """Take a version that a watch shows; return whether it is a newer one."""
        before = self.head(custom.key)
        if before is not None and before.version >= custom.version:
            return False
        self._customs[custom.key] = _Kept.of(custom)
        if custom.orphaning:
            self._remember(self._kept, custom)
        return True

    def hear(self, custom: Custom) -> bool:
        """As :meth:`put`, of an answer to a request: it may come after the end was seen."""
        return self._gone.get(custom.key) != custom.uid and self.put(custom)

    def remove(self, custom: Custom) -> bool:
        """Take the end of an object; return whether it was the one that is known."""
        self._remember(self._gone, custom)
        before = self.head(custom.key)
        if before is None or before.uid != custom.uid:
            return False
        del self._customs[custom.key]
        return True

    def replace(self, customs: Iterable[Custom]) -> Iterator[Key]:
        """Take all there are; give the names of those that are new, changed or gone."""
        before, self._customs = self._customs, {}
        for custom in customs:
            key, kept = custom.key, before.get(custom.key)
            self._customs[key] = _Kept.of(custom)
            known = kept.custom if kept is not None else None
            if custom.orphaning:
                self._remember(self._kept, custom)
            if known is None or (known.uid, known.version) != (custom.uid, custom.version):
                yield key
        for key in before:
            if key not in self._customs:
                yield key

    def seen_to_go(self, key: Key, uid: str) -> bool:
        """Whether the end of that very object was seen."""
        return self._gone.get(key) == uid

    def leaves_dependents(self, key: Key, uid: str) -> bool:
        """Whether that object was deleted in such a way that what it owns stays."""
        return self._kept.get(key) == uid

    def _remember(self, ends: dict[Key, str], custom: Custom) -> None:
        ends[custom.key] = custom.uid
        while len(ends) > MOST_REMEMBERED:
            del ends[next(iter(ends))]

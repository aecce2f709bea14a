"""How objects are answered: each form turns what is kept into what a client asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import orjson

from hekla.local.answers.paging import Page
from hekla.local.kinds.registry import Kind
from hekla.local.storage.memory import Entry

JSON: Final = "application/json"
GROUP: Final = "meta.k8s.io"
"""The group of the forms that are none of the kind's own."""


class Form(Protocol):
    """A form of objects, lists of them, and events about them."""

    @property
    def key(self) -> str:
        """The same for forms that turn the same into the same."""

    @property
    def content_type(self) -> str:
        """What an answer in this form says it is."""

    def one(self, entry: Entry) -> bytes:
        """One object, also that of an event."""

    def many(self, page: Page) -> Iterator[bytes]:
        """A list, in parts none of which takes long to make."""

    def mark(self, metadata: dict[str, object]) -> bytes:
        """An object that only says how far a watch is."""


class Plain:
    """Objects as they are, in the version that was asked for."""

    content_type = JSON

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self.key = kind.version

    def one(self, entry: Entry) -> bytes:
        """See ``Form``."""
        if entry.kind is self._kind or entry.kind.version == self._kind.version:
            return entry.raw
        value = entry.object()
        value["apiVersion"] = self._kind.api_version
        return orjson.dumps(value)

    def many(self, page: Page) -> Iterator[bytes]:
        """See ``Form``."""
        kind = self._kind
        head = {
            "kind": kind.list_name,
            "apiVersion": kind.api_version,
            "metadata": list_metadata(page),
        }
        items = b",".join([self.one(entry) for entry in page.entries])
        yield b'%b,"items":[%b]}' % (orjson.dumps(head)[:-1], items)

    def mark(self, metadata: dict[str, object]) -> bytes:
        """See ``Form``."""
        kind = self._kind
        return orjson.dumps(
            {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata}
        )


class Partial:
    """Only the metadata of objects."""

    def __init__(self, version: str) -> None:
        self._version = f"{GROUP}/{version}"
        self.key = f"metadata as {version}"
        self.content_type = f"{JSON};as=PartialObjectMetadata;g={GROUP};v={version}"

    def one(self, entry: Entry) -> bytes:
        """See ``Form``."""
        return self.mark(entry.object()["metadata"])

    def many(self, page: Page) -> Iterator[bytes]:
        """See ``Form``."""
        head = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": self._version,
            "metadata": list_metadata(page),
        }
        yield b'%b,"items":[' % orjson.dumps(head)[:-1]
        for number, entry in enumerate(page.entries):
            yield b"," * bool(number) + self.one(entry)
        yield b"]}"

    def mark(self, metadata: dict[str, object]) -> bytes:
        """See ``Form``."""
        return orjson.dumps(
            {
                "kind": "PartialObjectMetadata",
                "apiVersion": self._version,
                "metadata": metadata,
            }
        )


def list_metadata(page: Page) -> dict[str, object]:
    """The metadata of a list."""
    metadata: dict[str, object] = {"resourceVersion": str(page.version)}
    if page.token:
        metadata |= {"continue": page.token, "remainingItemCount": page.remaining}
    return metadata

"""What passes between the client and its engine, in a thread or over a socket to a process.

Objects pass as the JSON they are sent or came in: neither side decodes more than it needs.
"""

from __future__ import annotations

import pickle
import struct
from enum import StrEnum
from typing import Any, Final, NamedTuple

LENGTH: Final = struct.Struct("!Q")
"""Every frame on a socket begins with the number of bytes that follow."""


def frame(message: object) -> bytes:
    """The bytes in which a message crosses a socket."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(body)) + body


class Verb(StrEnum):
    """What a write does; decides how it is settled when it is not answered."""

    CREATE = "create"
    DELETE = "delete"
    PATCH = "patch"
    BIND = "bind"


class Write(NamedTuple):
    """One request that changes something."""

    verb: Verb
    path: str
    body: bytes
    object_path: str
    """Where to look for what came of it; empty if the name is not known (generateName)."""
    mark: str
    """What tells our object or effect from another's: attempt uid, uid; may be empty."""
    node: str = ""
    fenced: bool = False


class Outcome(NamedTuple):
    """What became of a request, its object still as JSON."""

    status: int
    body: bytes = b""
    reason: str = ""
    message: str = ""


class Watch(NamedTuple):
    """What a watch is about."""

    path: str
    query: tuple[tuple[str, str], ...] = ()
    project: str | None = None
    """``module:function``, applied to every object in the engine."""


class Logs(NamedTuple):
    """Which log to stream."""

    path: str
    query: tuple[tuple[str, str], ...] = ()


class Writes(NamedTuple):
    """A batch of writes; the result is a list of Outcome in the same order."""

    writes: list[Write]


class Get(NamedTuple):
    """Read one object; the result is an Outcome."""

    path: str


class List(NamedTuple):
    """Read all objects, page by page; the result is a Listing or an Outcome."""

    path: str
    query: tuple[tuple[str, str], ...] = ()
    page: int = 500


class Listing(NamedTuple):
    """All pages of one list."""

    pages: list[bytes]
    resource_version: str


# To the engine.


class Call(NamedTuple):
    """Answer with Returned or Failed of the same id by ``deadline`` (monotonic)."""

    id: int
    request: Writes | Get | List
    deadline: float


class Open(NamedTuple):
    """Begin a stream; ``credit`` batches may be sent before more Credit comes."""

    id: int
    stream: Watch | Logs
    credit: int


class Credit(NamedTuple):
    """The consumer took so many batches."""

    id: int
    batches: int


class Close(NamedTuple):
    """End a stream; what is under way may still arrive."""

    id: int


# From the engine.


class Returned(NamedTuple):
    """The result of a call."""

    id: int
    result: Any


class Failed(NamedTuple):
    """The engine could not do a call, through a fault of its own."""

    id: int
    message: str


class Batch(NamedTuple):
    """Items of a stream: lines of a watch, or (type, projected) pairs, or bytes of a log."""

    id: int
    items: list[Any]


class Page(NamedTuple):
    """A part of a full list: one page as JSON, or projected objects."""

    id: int
    page: Any
    length: int
    first: bool
    """What came before belongs to a list that was not finished."""


class Relisted(NamedTuple):
    """The pages since the last one are the full list."""

    id: int


class Ended(NamedTuple):
    """A stream is over, well (200) or not."""

    id: int
    outcome: Outcome


ToEngine = Call | Open | Credit | Close
FromEngine = Returned | Failed | Batch | Page | Relisted | Ended

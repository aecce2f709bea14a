"""What requests ask for, in words that the store can take."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from google.protobuf.message import Message

from hekla.domain import syntax, timestamps
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.names import Key
from hekla.store.objects import LARGEST_PAGE, Place
from hekla.store.once import Asking

DEFAULT_PAGE: Final = 100
LONGEST_TEXT: Final = 1024
ID: Final = "request_id"
LONGEST_REQUEST_ID: Final = 128
"""Characters. It is part of a key in Postgres."""


def text(value: str, path: str, *, longest: int = LONGEST_TEXT) -> str:
    """A text of a request that is stored, or looked for in what is stored.

    Raises:
        InvalidError: it cannot be in there.
    """
    if "\0" in value:
        raise InvalidError.of([Violation(path, "must be a text without NUL characters")])
    if len(value) > longest:
        message = f"must be no more than {longest} characters, has {len(value)}"
        raise InvalidError.of([Violation(path, message)])
    return value


def asking(request: Message) -> Asking:
    """What a request with a ``request_id`` asks for, so that it is done once.

    Raises:
        InvalidError: its id cannot be stored.
    """
    copied = type(request).FromString(request.SerializeToString())
    copied.ClearField(ID)
    return Asking(
        method=request.DESCRIPTOR.name.removesuffix("Request"),
        id=text(getattr(request, ID), ID, longest=LONGEST_REQUEST_ID),
        body=copied.SerializeToString(deterministic=True),
    )


def instant(value: str, path: str) -> datetime | None:
    """An instant that may be absent, as it is written in YAML.

    Raises:
        InvalidError: it is none.
    """
    if not value:
        return None
    try:
        return timestamps.from_text(text(value, path))
    except InvalidError as error:
        raise InvalidError.of(
            [Violation(path, f"must be an instant such as 2026-01-31T12:00:00Z: {error}")]
        ) from None


def among(values: Iterable[str], known: Collection[str], path: str) -> Sequence[str]:
    """Words of a request, which are all known ones.

    Raises:
        InvalidError: one is not.
    """
    found = list(values)
    for value in found:
        if value not in known:
            message = f"must be of {', '.join(known)}, is {value[:60]!r}"
            raise InvalidError.of([Violation(path, message)])
    return found


def key(namespace: str, name: str) -> Key:
    """The object a request names; the namespace is ``default`` unless it says another.

    Raises:
        InvalidError: the name is missing, or none that could be stored.
    """
    if not name:
        raise InvalidError.of([Violation("name", "is required")])
    return Key(text(namespace, "namespace") or "default", text(name, "name"))


def path_part(value: str, path: str) -> str:
    """The name of something in Kubernetes, which becomes a part of a URL.

    Raises:
        InvalidError: it is no name.
    """
    wrong = syntax.subdomain_error(value) if value else None
    if wrong is not None:
        raise InvalidError.of([Violation(path, f"{wrong}, is {value[:60]!r}")])
    return value


def uid(text: str, path: str = "uid") -> UUID | None:
    """A uid that may be absent.

    Raises:
        InvalidError: it is none.
    """
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError:
        raise InvalidError.of(
            [Violation(path, f"must be a uid such as {UUID(int=0)}, is {text[:60]!r}")]
        ) from None


def page_size(size: int) -> int:
    """How many objects a page has.

    Raises:
        InvalidError: it is negative.
    """
    if size < 0:
        raise InvalidError.of([Violation("page_size", f"must be >= 0, is {size}")])
    return min(size or DEFAULT_PAGE, LARGEST_PAGE)


def changes(most: int) -> int:
    """How many changes a message of a watch holds.

    Raises:
        InvalidError: it is negative.
    """
    if most < 0:
        raise InvalidError.of([Violation("most", f"must be >= 0, is {most}")])
    return min(most or 1, LARGEST_PAGE)


def place_to_token(place: Place) -> str:
    """Where a page ended, for the next call."""
    text = f"{timestamps.to_micro_text(place.created_at)} {place.uid}"
    return base64.urlsafe_b64encode(text.encode()).decode()


def token_to_place(token: str) -> Place | None:
    """Where the page before ended; None for the first page.

    Raises:
        InvalidError: no page of ours ended there.
    """
    if not token:
        return None
    try:
        at, _, place = _from_token(token).partition(" ")
        return Place(timestamps.from_text(at), UUID(place))
    except (ValueError, InvalidError):
        raise not_a_token() from None


def name_to_token(name: str) -> str:
    """The name a page ended with, for the next call; empty if it was the last page."""
    return base64.urlsafe_b64encode(name.encode()).decode()


def token_to_name(token: str) -> str:
    """The name the page before ended with; empty for the first page.

    Raises:
        InvalidError: no page of ours ended there.
    """
    try:
        return text(_from_token(token), "page_token")
    except (ValueError, InvalidError):
        raise not_a_token() from None


def _from_token(token: str) -> str:
    return base64.b64decode(token, altchars=b"-_", validate=True).decode()


def not_a_token() -> InvalidError:
    """What is said of a page token that no page of ours gave."""
    return InvalidError.of([Violation("page_token", "must be one that an earlier page gave")])

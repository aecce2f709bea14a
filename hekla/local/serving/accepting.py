"""Which form a client takes, by the ``Accept`` header of its request."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from hekla.local.answers.forms import GROUP, JSON, Form, Partial, Plain
from hekla.local.answers.tables import INCLUDED, Tables
from hekla.local.kinds import errors
from hekla.local.kinds.registry import Kind
from hekla.local.serving.routing import Request

_PLAIN: Final = frozenset({JSON, "application/*", "*/*"})
_VERSIONS: Final = ("v1", "v1beta1")
_PARTIAL: Final = ("PartialObjectMetadata", "PartialObjectMetadataList")


def form_of(kind: Kind, request: Request, now: Callable[[], datetime]) -> Form:
    """The first form of those that the client takes which is served.

    Raises:
        ApiError: it takes none of them.
    """
    accept = request.accept
    if not accept or accept in _PLAIN:  # most often
        return Plain(kind)
    for part in accept.split(","):
        media, *parameters = (word.strip() for word in part.split(";"))
        if media not in _PLAIN:
            continue
        wanted = dict(word.partition("=")[::2] for word in parameters)
        form = wanted.get("as", "")
        version = wanted.get("v", "")
        if not form:
            return Plain(kind)
        if wanted.get("g") != GROUP or version not in _VERSIONS:
            continue
        if form == "Table":
            return Tables(kind, version, _included(request), now)
        if form in _PARTIAL:
            return Partial(version)
    raise errors.not_acceptable(JSON)


def _included(request: Request) -> str:
    included = request.query.get("includeObject", "Metadata") or "Metadata"
    if included not in INCLUDED:
        raise errors.bad_request(
            f"unrecognized includeObject value: {included[:80]!r}: "
            "must be one of None, Metadata, Object"
        )
    return included

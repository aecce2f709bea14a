"""Between the messages of protos/ and what the store has. Nothing else is here."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias
from uuid import UUID

from hekla.domain import syntax, timestamps
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.names import Key
from hekla.store.events import Event
from hekla.store.jobs import Place
from hekla.store.objects import LARGEST_PAGE
from hekla.store.schema import AttemptRow
from hekla.v1 import (
    job_pb2,
    job_service_pb2 as of_jobs,
    pod_group_service_pb2 as of_pod_groups,
    queue_service_pb2 as of_queues,
)
from services.controller.once import Asking

Mutating: TypeAlias = (
    of_jobs.CreateJobRequest
    | of_jobs.UpdateJobRequest
    | of_jobs.DeleteJobRequest
    | of_jobs.CommandJobRequest
    | of_queues.CreateQueueRequest
    | of_queues.UpdateQueueRequest
    | of_queues.DeleteQueueRequest
    | of_queues.CommandQueueRequest
    | of_pod_groups.CreatePodGroupRequest
    | of_pod_groups.DeletePodGroupRequest
)

DEFAULT_PAGE: Final = 100
LONGEST_TEXT: Final = 1024
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


def asking(request: Mutating) -> Asking:
    """What a request that changes something asks for, so that it is done once.

    Raises:
        InvalidError: its id cannot be stored.
    """
    copied = type(request).FromString(request.SerializeToString())
    copied.ClearField("request_id")
    return Asking(
        method=request.DESCRIPTOR.name.removesuffix("Request"),
        id=text(request.request_id, "request_id", longest=LONGEST_REQUEST_ID),
        body=copied.SerializeToString(deterministic=True),
    )


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
        raise _not_a_token() from None


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
        raise _not_a_token() from None


def _from_token(token: str) -> str:
    return base64.b64decode(token, altchars=b"-_", validate=True).decode()


def _not_a_token() -> InvalidError:
    return InvalidError.of([Violation("page_token", "must be one that an earlier page gave")])


def attempt_to_message(row: AttemptRow) -> job_pb2.Attempt:
    """An attempt of a job that exists."""
    return job_pb2.Attempt(
        uid=str(row.uid),
        task=row.task,
        index=row.index,
        run=row.run,
        job_version=row.job_version,
        pod_name=row.pod_name,
        pod_uid=row.pod_uid or "",
        phase=_phase(row.phase, row.outcome, row.pod_uid),
        ready=row.ready,
        node=row.node,
        reason=row.reason or row.doomed or "",
        outcome=row.outcome or "",
        exit_codes={name: int(code) for name, code in row.exit_codes.items()},
        created_at=_instant(row.created_at),
        started_at=_instant(row.started_at),
        finished_at=_instant(row.finished_at),
    )


def past_attempt_to_message(row: Mapping[str, Any]) -> job_pb2.Attempt:
    """An attempt of a job that was removed, from its row as it was kept."""
    return job_pb2.Attempt(
        uid=row["uid"],
        task=row["task"],
        index=row["index"],
        run=row["run"],
        job_version=row["job_version"],
        pod_name=row["pod_name"],
        pod_uid=row["pod_uid"] or "",
        phase=_phase(row["phase"], row["outcome"], row["pod_uid"]),
        ready=False,
        node=row["node"],
        reason=row["reason"] or row["doomed"] or "",
        outcome=row["outcome"] or "",
        exit_codes={name: int(code) for name, code in row["exit_codes"].items()},
        created_at=_past_instant(row["created_at"]),
        started_at=_past_instant(row["started_at"]),
        finished_at=_past_instant(row["finished_at"]),
    )


def event_to_message(event: Event) -> job_pb2.JobEvent:
    """Something that happened to a job."""
    return job_pb2.JobEvent(
        type=event.type, reason=event.reason, message=event.message, at=_instant(event.at)
    )


def _phase(phase: str, outcome: str | None, pod_uid: str | None) -> str:
    return "Planned" if outcome is None and pod_uid is None else phase


def _instant(at: datetime | None) -> str:
    return timestamps.to_text(at) if at is not None else ""


def _past_instant(text: str | None) -> str:
    return _instant(datetime.fromisoformat(text)) if text else ""

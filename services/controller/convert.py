"""Between the messages of protos/ and what the store has. Nothing else is here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from hekla.domain import timestamps
from hekla.store import asked
from hekla.store.events import Event
from hekla.store.schema import AttemptRow
from hekla.v1 import job_pb2
from services.controller.attempt_calls import PodPlace


def pod_to_token(place: PodPlace) -> str:
    """Where a page of pods ended, for the next call."""
    return asked.name_to_token(" ".join(str(part) for part in place))


def token_to_pod(token: str) -> PodPlace | None:
    """Where the page of pods before ended; None for the first page.

    Raises:
        InvalidError: no page of ours ended there.
    """
    if not token:
        return None
    try:
        namespace, name, attempt = asked.token_to_name(token).split(" ")
        return PodPlace(namespace, name, UUID(attempt))
    except ValueError:
        raise asked.not_a_token() from None


def token_to_number(token: str) -> int:
    """How many came on the pages before.

    Raises:
        InvalidError: no page of ours ended there.
    """
    words = asked.token_to_name(token)
    if words and not (words.isascii() and words.isdigit() and len(words) < 10):
        raise asked.not_a_token()
    return int(words or 0)


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

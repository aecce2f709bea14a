"""Mutating calls that were answered: a repetition is answered again and does nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
from sqlalchemy import text

from hekla.domain.errors import InvalidError
from hekla.store import batch
from hekla.store.batch import Question
from hekla.store.database import Session

KEEP_EVERY: Final = timedelta(hours=1)
"""So often a call is noted again, at most."""


class RequestKey(NamedTuple):
    """Names one call of one caller."""

    caller: str
    method: str
    id: str


class Answered(NamedTuple):
    """What the answer is rebuilt from."""

    uids: Sequence[UUID]
    warnings: Sequence[str]


def find(session: Session, key: RequestKey, body: bytes) -> Answered | None:
    """The call's earlier answer, or None if it is new. A call without an id is always new.

    Raises:
        InvalidError: the same id came with another body.
    """
    return batch.answer(session, finding(key, body)) if key.id else None


_FIND = text(
    "select body_hash, uids, warnings from request join store using (incarnation)"
    " where caller = :caller and method = :method and id = :id"
)


def finding(key: RequestKey, body: bytes) -> Question[Answered | None]:
    """As :func:`find`, to be asked outside of a transaction, or with other things."""

    def read(rows: Sequence[Any]) -> Answered | None:
        if not rows:
            return None
        [row] = rows
        if bytes(row.body_hash) != _digest(body):
            raise InvalidError(
                f"request_id {key.id!r} was used for another {key.method}; choose a new one"
            )
        return Answered([UUID(uid) for uid in row.uids], row.warnings)

    return Question(_FIND, key._asdict(), read)


_RECORD = text("""
    insert into request (caller, method, id, body_hash, uids, warnings, incarnation)
    select :caller, :method, :id, :hash, cast(:uids as jsonb), cast(:warnings as jsonb),
           incarnation from store
    on conflict (caller, method, id) do update
       set body_hash = excluded.body_hash, uids = excluded.uids,
           warnings = excluded.warnings, incarnation = excluded.incarnation,
           created_at = excluded.created_at
     where request.incarnation <> excluded.incarnation
    returning id
""")


def record(
    session: Session,
    key: RequestKey,
    body: bytes,
    *,
    uids: Sequence[UUID],
    warnings: Sequence[str] = (),
) -> bool:
    """Note the call in the transaction that does it; False if a twin was there first.

    Then the caller rolls back and answers from :func:`find`.
    """
    if not key.id:
        return True
    return batch.answer(session, recording(key, body, uids=uids, warnings=warnings))


def recording(
    key: RequestKey, body: bytes, *, uids: Sequence[UUID], warnings: Sequence[str] = ()
) -> Question[bool]:
    """As :func:`record`, to be asked together with other things."""
    values = key._asdict() | {
        "hash": _digest(body),
        "uids": orjson.dumps([str(uid) for uid in uids]).decode(),
        "warnings": orjson.dumps(list(warnings)).decode(),
    }
    return Question(_RECORD, values, bool)


_KEEP = text("""
    update request set created_at = clock_timestamp()
     where caller = :caller and method = :method and id = :id
       and created_at < clock_timestamp() - cast(:every as interval)
""")


def keep(session: Session, key: RequestKey) -> None:
    """Remember a call for as long again: who made it is still there, and may ask once more."""
    session.execute(_KEEP, key._asdict() | {"every": KEEP_EVERY})


def prune(session: Session, *, older_than: timedelta, limit: int = 10_000) -> int:
    """Forget calls that are old; return how many."""
    done = session.execute(
        text(
            "delete from request where ctid in (select ctid from request"
            " where created_at < clock_timestamp() - :age limit :limit)"
        ),
        {"age": older_than, "limit": limit},
    )
    return int(done.rowcount)  # type: ignore[attr-defined]


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()

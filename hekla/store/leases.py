"""Leases: who leads, by Postgres' clock.

Each time a lease changes hands its epoch grows. A write that only the leader may make calls
:func:`hold` in its transaction: it keeps a share of the row with that epoch, so that a
takeover waits for the write or the write sees the takeover, never neither. Renewals change
``until`` alone and do not conflict with it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import text

from hekla.domain.errors import PreconditionError
from hekla.store import batch
from hekla.store.database import Session


class Lease(NamedTuple):
    """A lease as it stands."""

    name: str
    epoch: int
    holder: str
    remaining: timedelta
    released: bool


_ACQUIRE = text("""
    insert into lease as held (name, epoch, holder, until)
    values (:name, 1, :holder, clock_timestamp() + :ttl)
    on conflict (name) do update
       set epoch = held.epoch + 1, holder = excluded.holder,
           until = clock_timestamp() + :ttl, released = false
     where held.until < clock_timestamp() or held.released
    returning epoch, (select released from lease where name = :name)
""")


class Taken(NamedTuple):
    """A lease that was just taken."""

    epoch: int
    clean: bool
    """Whether its last holder gave it up, or there was none: nothing of theirs is under way."""


def acquire(session: Session, name: str, *, holder: str, ttl: timedelta) -> Taken | None:
    """Take the lease if it is free, and return its new epoch."""
    values = {"name": name, "holder": holder, "ttl": ttl}
    row = session.execute(_ACQUIRE, values).one_or_none()
    return None if row is None else Taken(int(row[0]), row[1] is None or bool(row[1]))


_RENEW = text("""
    update lease set until = clock_timestamp() + :ttl
     where name = :name and epoch = :epoch and not released and until >= clock_timestamp()
    returning 1
""")


def renew(session: Session, name: str, *, epoch: int, ttl: timedelta) -> bool:
    """Keep the lease; False if it was lost."""
    values = {"name": name, "epoch": epoch, "ttl": ttl}
    return bool(batch.answer(session, batch.rows_of(_RENEW, values)))


def release(session: Session, name: str, *, epoch: int) -> None:
    """Give the lease up, so that the next holder need not wait."""
    session.execute(
        text("update lease set released = true where name = :name and epoch = :epoch"),
        {"name": name, "epoch": epoch},
    )


_HOLD = text(
    "select 1 from lease where name = :name and epoch = :epoch and not released for key share"
)


def hold(session: Session, name: str, *, epoch: int) -> None:
    """Make sure, until the transaction ends, that ``epoch`` leads.

    Raises:
        PreconditionError: another epoch does, or this one was given up; the caller stops
            leading.
    """
    if not batch.answer(session, batch.rows_of(_HOLD, {"name": name, "epoch": epoch})):
        raise PreconditionError(f"epoch {epoch} of lease {name} is over")


def get(session: Session, name: str) -> Lease | None:
    """The lease as it stands, or None if nobody ever took it."""
    row = session.execute(
        text(
            "select name, epoch, holder, until - clock_timestamp() as remaining, released"
            " from lease where name = :name"
        ),
        {"name": name},
    ).one_or_none()
    return None if row is None else Lease(*row)

"""The work queue: which objects want a look, and who is looking.

Level-triggered: a row says "look at this object", not what to do. A wake that comes while
someone looks is not lost: it moves ``wake_seq``, and a release that saw an older one leaves
the row due. A claim is a lease with a token; who lost it (too slow, or stopped) can neither
record nor release, since both name the token. Back-off lies in ``not_before``, so that wakes
do not undo it.

Everybody locks objects first and work rows last, or they would wait in a circle. A pass may
still call :func:`hold` first: what that keeps of the row, claims conflict with and wakes do
not; a renewal is written at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import text

from hekla.domain.errors import ConflictError
from hekla.store import batch
from hekla.store.batch import Question
from hekla.store.database import Session


class Claim(NamedTuple):
    """The right to act on one object, until ``lease`` after it was taken."""

    kind: str
    uid: str
    token: UUID
    wake_seq: int
    failures: int


_WAKE = text("""
    insert into work (kind, uid, due_at)
    select :kind, uid, coalesce(cast(:due_at as timestamptz), clock_timestamp())
      from unnest(cast(:uids as text[])) as uid
     order by uid
    on conflict (kind, uid) do update
       set wake_seq = work.wake_seq + 1,
           due_at = least(work.due_at, excluded.due_at),
           not_before = case when :urgent then null else work.not_before end,
           urgent = work.urgent or :urgent
""")


def wake(
    session: Session,
    kind: str,
    *uids: str,
    due_at: datetime | None = None,
    urgent: bool = False,
) -> None:
    """Ask for a look, now or at ``due_at``, in the transaction that gives the reason.

    An ``urgent`` wake (a command, a deletion, a new spec) ends a back-off too, and the one
    that the look under way would leave behind.
    """
    if uids:
        values = {"kind": kind, "uids": list(uids), "due_at": due_at, "urgent": urgent}
        batch.later(session, _WAKE, values)
        session.info["changed"] = True


# The subquery is what lets the index end the search where the future begins.
_CLAIM = text("""
    with due as (
        select kind, uid from work
         where kind = any(:kinds)
           and greatest(due_at, not_before) <= (select clock_timestamp())
           and (claimed_until is null or claimed_until < clock_timestamp())
         order by greatest(due_at, not_before) limit :limit
           for update skip locked
    )
    update work
       set claim_token = :token, claimed_until = clock_timestamp() + :lease, urgent = false
      from due where work.kind = due.kind and work.uid = due.uid
    returning work.kind, work.uid, work.claim_token, work.wake_seq, work.failures
""")


def claim(
    session: Session, kinds: Collection[str], *, limit: int, lease: timedelta
) -> Sequence[Claim]:
    """Take up to ``limit`` due objects, longest due first, that nobody else holds."""
    return batch.answer(session, claiming(kinds, limit=limit, lease=lease))


def claiming(
    kinds: Collection[str], *, limit: int, lease: timedelta
) -> Question[Sequence[Claim]]:
    """As :func:`claim`, to be asked outside of a transaction, or with other things."""
    values = {"kinds": list(kinds), "limit": limit, "lease": lease, "token": uuid4()}
    return Question(_CLAIM, values, lambda rows: [Claim(*row) for row in rows])


_NEXT_DUE = text("""
    select extract(epoch from greatest(due_at, not_before) - clock_timestamp())::float8
      from work
     where kind = any(:kinds) and greatest(due_at, not_before) > (select clock_timestamp())
     order by greatest(due_at, not_before) limit 1
""")


def next_due(kinds: Collection[str]) -> Question[float | None]:
    """In how many seconds time alone makes another object due; None if it does not."""
    return Question(
        _NEXT_DUE, {"kinds": list(kinds)}, lambda rows: float(rows[0][0]) if rows else None
    )


_MINE = "kind = :kind and uid = :uid and claim_token = :token"


_HOLD = text(
    f"select clock_timestamp() from work where {_MINE} for key share"  # noqa: S608
)
_RENEW = text(
    f"update work set claimed_until = clock_timestamp() + :renew where {_MINE}"  # noqa: S608
)


def hold(session: Session, claim: Claim, *, renew: timedelta | None = None) -> datetime:
    """Make sure, until the transaction ends, that the claim is still ours; return the time.

    With ``renew`` it also lasts that much longer, as by :func:`extend`.

    Raises:
        ConflictError: it expired and someone else took it; record nothing.
    """
    now = batch.answer(session, holding(claim))
    if renew is not None:
        extend(session, claim, renew)
    return now


def holding(claim: Claim) -> Question[datetime]:
    """As :func:`hold`, to be asked together with other things."""

    def read(rows: Sequence[Any]) -> datetime:
        if not rows:
            raise ConflictError(f"the claim on {claim.kind} {claim.uid} was lost")
        now: datetime = rows[0][0]
        return now

    return Question(_HOLD, claim._asdict(), read)


def extend(session: Session, claim: Claim, lease: timedelta) -> None:
    """Have a claim that is held last that much longer, from the transaction's end."""
    batch.later(session, _RENEW, claim._asdict() | {"renew": lease})


_AGAIN_NOW = text(f"""
    update work
       set claim_token = null, claimed_until = null, failures = 0,
           due_at = least(due_at, clock_timestamp()),
           not_before = case when urgent then null else clock_timestamp() + :rest end
     where {_MINE}
""")  # noqa: S608

_AGAIN_AT = text(f"""
    update work
       set claim_token = null, claimed_until = null, failures = 0,
           due_at = :due_at, not_before = null
     where {_MINE} and wake_seq = :wake_seq
""")  # noqa: S608

_FAIL = text(f"""
    update work
       set claim_token = null, claimed_until = null, failures = failures + 1,
           due_at = least(due_at, clock_timestamp()),
           not_before = case when urgent then null else clock_timestamp() + :backoff end
     where {_MINE}
""")  # noqa: S608

_FORGET = text(f"delete from work where {_MINE} and wake_seq = :wake_seq")  # noqa: S608


def release(
    session: Session,
    claim: Claim,
    *,
    due_at: datetime | None = None,
    rest: timedelta = timedelta(0),
) -> None:
    """End a look: forget the object, or look again at ``due_at``, or soon if it was woken.

    If it was woken meanwhile, and not urgently, then after ``rest`` at the earliest, so that
    an object that changes all the time does not take all the time.
    """
    values = claim._asdict() | {"due_at": due_at, "rest": rest}
    batch.later(session, _FORGET if due_at is None else _AGAIN_AT, values)
    # This finds the claim no more, unless a wake kept that one from doing anything.
    batch.later(session, _AGAIN_NOW, values)
    session.info["changed"] = True  # when it is due is news


def fail(session: Session, claim: Claim, *, backoff: timedelta) -> None:
    """End a look that failed: look again after ``backoff``, or at once if woken urgently."""
    batch.later(session, _FAIL, claim._asdict() | {"backoff": backoff})
    session.info["changed"] = True


def depth(session: Session, kinds: Collection[str]) -> tuple[int, float]:
    """How many objects are due, and for how many seconds the first of them has been."""
    row = session.execute(
        text(
            "select count(*),"
            " coalesce(max(extract(epoch from clock_timestamp() - due_at)), 0)::float8"
            " from work where kind = any(:kinds)"
            " and greatest(due_at, not_before) <= (select clock_timestamp())"
        ),
        {"kinds": list(kinds)},
    ).one()
    return int(row[0]), float(row[1])

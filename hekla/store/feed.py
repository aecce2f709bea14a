"""The change feed: what changed since a cursor, once each and in order for each object.

A cursor is a Postgres snapshot, not a number. A row is new to a reader if the transaction
that wrote it was not visible in the reader's last snapshot, whenever that transaction began
and however long it stayed open; so no change is lost behind a slow writer, and no open
transaction holds the others back. A serial number can promise neither.

For one object ``seq`` grows with its versions, because it is drawn while the writer holds
the object's row lock: record a change after the write to the row, in the same transaction.

Rows hold keys only, but for a delete, which carries the object's last state. They lie in a
ring of partitions, truncated in turn; the ``store`` row says what was dropped, and a cursor
that may have missed something of it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
from sqlalchemy import text

from hekla.domain.errors import CursorExpiredError
from hekla.store.database import Session

SLOTS: Final = 4
SLOT_LENGTH: Final = timedelta(minutes=15)
"""How long one partition is written to; changes are kept for at least two of these."""

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"


class Change(NamedTuple):
    """An object that is now at ``version``. Its state is read from its own table."""

    kind: str
    uid: str
    version: int
    type: str
    last: Mapping[str, Any] | None = None
    xid: int = 0
    """The transaction that made it; known once it is read."""


class Cursor(NamedTuple):
    """A place in the feed of one store."""

    incarnation: UUID
    snapshot: str
    """As Postgres writes a snapshot: ``xmin:xmax:xip,xip,…``."""

    def __str__(self) -> str:
        return f"{self.incarnation.hex}:{self.snapshot}"

    @property
    def xmin(self) -> int:
        """Every transaction below this was over when the cursor was taken."""
        return int(self.snapshot.split(":")[0])

    def _parts(self) -> tuple[int, int, frozenset[int]]:
        xmin, xmax, xip = self.snapshot.split(":")
        return int(xmin), int(xmax), frozenset(int(xid) for xid in xip.split(",") if xid)

    def sees(self, xid: int) -> bool:
        """Whether that transaction was over when the cursor was taken."""
        xmin, xmax, running = self._parts()
        return xid < xmin or (xid < xmax and xid not in running)

    def covers(self, other: Cursor) -> bool:
        """Whether all that ``other`` sees is seen from here."""
        _, xmax, running = self._parts()
        _, other_xmax, other_running = other._parts()
        hidden = {xid for xid in running if xid < other_xmax}
        return xmax >= other_xmax and hidden <= other_running

    @classmethod
    def parse(cls, words: str) -> Cursor:
        """Read a cursor that was handed to a caller.

        Raises:
            CursorExpiredError: it is none of ours.
        """
        try:
            incarnation, xmin, xmax, xip = words.split(":")
            running = [int(xid) for xid in xip.split(",") if xid]
            if not 0 < int(xmin) <= int(xmax) or len(running) > 10_000:
                raise ValueError
            members = ",".join(str(xid) for xid in running)
            return cls(UUID(incarnation), f"{int(xmin)}:{int(xmax)}:{members}")
        except ValueError:
            raise CursorExpiredError(f"{words[:80]!r} is not a cursor; list again") from None


class Batch(NamedTuple):
    """What is new, and the cursor to read on from."""

    changes: Sequence[Change]
    cursor: Cursor


_RECORD = text(f"""
    insert into change (slot, kind, uid, version, type, last)
    values (floor(extract(epoch from clock_timestamp()) / {SLOT_LENGTH.total_seconds()})::bigint
                % {SLOTS},
            :kind, :uid, :version, :type, cast(:last as jsonb))
""")  # noqa: S608


def record(session: Session, *changes: Change) -> None:
    """Say that objects changed. The caller holds the locks on the objects' rows."""
    if not changes:
        return
    values = [
        {
            "kind": change.kind,
            "uid": change.uid,
            "version": change.version,
            "type": change.type,
            "last": None if change.last is None else orjson.dumps(change.last).decode(),
        }
        for change in changes
    ]
    session.execute(_RECORD, values)
    session.info["changed"] = True


_START = text("select incarnation, pg_current_snapshot()::text as snapshot from store")


def start(session: Session) -> Cursor:
    """A cursor that is behind nothing: use it with a list read in the same snapshot."""
    row = session.execute(_START).one()
    return Cursor(row.incarnation, row.snapshot)


def check(session: Session, cursor: Cursor) -> None:
    """Make sure that nothing after ``cursor`` was dropped.

    Raises:
        CursorExpiredError: it is too old or of another store; the caller lists again.
    """
    row = session.execute(text("select incarnation, feed_horizon::text from store")).one()
    if row.incarnation != cursor.incarnation:
        raise CursorExpiredError("the cursor is of another store; list again")
    if cursor.xmin <= int(row.feed_horizon):
        raise CursorExpiredError("the cursor is too old; list again")


_SINCE = text("""
    with here as materialized (select pg_current_snapshot() as snapshot)
    select here.snapshot::text as snapshot,
           change.kind, change.uid, change.version, change.type, change.last,
           change.xid::text as xid
      from here
      left join change
        on change.xid >= pg_snapshot_xmax(cast(:snapshot as pg_snapshot))
        or change.xid = any (array(select pg_snapshot_xip(cast(:snapshot as pg_snapshot))))
     order by change.seq
""")


def since(session: Session, cursor: Cursor) -> Batch:
    """Read what is new since ``cursor``, oldest first. One statement, so one snapshot."""
    rows = session.execute(_SINCE, {"snapshot": cursor.snapshot}).all()
    changes = [
        Change(row.kind, row.uid, row.version, row.type, row.last, int(row.xid))
        for row in rows
        if row.kind is not None
    ]
    return Batch(changes, Cursor(cursor.incarnation, rows[0].snapshot))


_NEXT_SLOT = text(f"""
    select (floor(extract(epoch from clock_timestamp()) / {SLOT_LENGTH.total_seconds()})::bigint
               + 1) % {SLOTS}
""")  # noqa: S608


def turn(session: Session) -> int:
    """Empty the partition that comes next in the ring; return how many changes it held.

    Call it more often than once in ``SLOT_LENGTH``. The horizon moves in the same
    transaction, so no reader takes a gap for silence.
    """
    slot = int(session.execute(_NEXT_SLOT).scalar_one())
    found = session.execute(
        text(f"select count(*), max(xid)::text from change_{slot}")  # noqa: S608
    ).one()
    if not found[0]:
        return 0
    session.execute(
        text("update store set feed_horizon = greatest(feed_horizon, cast(:xid as xid8))"),
        {"xid": found[1]},
    )
    session.execute(text("set local lock_timeout = '1s'"))
    session.execute(text(f"truncate change_{slot}"))
    return int(found[0])


_LAG = text("""
    select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)
      from pg_stat_activity where backend_xmin is not null or backend_xid is not null
""")


def oldest_transaction_seconds(session: Session) -> float:
    """How long the oldest transaction that this role may see has been open."""
    return float(session.execute(_LAG).scalar_one())

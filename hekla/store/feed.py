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
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import text

from hekla.domain.errors import CursorExpiredError
from hekla.store import batch
from hekla.store.database import Session
from hekla.store.objects import to_text

SLOTS: Final = 4
SLOT_LENGTH: Final = timedelta(minutes=15)
"""How long one partition is written to; changes are kept for at least two of these."""

MOST_CHANGES: Final = 50_000
"""Who is further behind than this reads a list sooner."""
LARGEST_XID: Final = 2**63

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
        return f"{self.incarnation.hex}:{self.snapshot}" if self.snapshot else ""

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

    def missed(self, here: Cursor, horizon: int) -> bool:
        """Whether something that was dropped up to ``horizon`` may be news from here.

        What still ran ``here`` cannot have been dropped, however old it is.
        """
        _, xmax, running = self._parts()
        return xmax <= horizon or any(xid <= horizon and here.sees(xid) for xid in running)

    @classmethod
    def parse(cls, words: str) -> Cursor:
        """Read a cursor that was handed to a caller; empty words are the beginning.

        Raises:
            CursorExpiredError: it is none of ours.
        """
        if not words:
            return BEGINNING
        try:
            incarnation, xmin, xmax, xip = words.split(":")
            running = [int(xid) for xid in xip.split(",") if xid]
            low, high = int(xmin), int(xmax)
            in_order = all(one < next_ for one, next_ in pairwise([low - 1, *running, high]))
            if not (0 < low <= high < LARGEST_XID and in_order):
                raise ValueError
            members = ",".join(str(xid) for xid in running)
            return cls(UUID(incarnation), f"{low}:{high}:{members}")
        except ValueError:
            raise CursorExpiredError(f"{words[:80]!r} is not a cursor; list again") from None


BEGINNING: Final = Cursor(UUID(int=0), "")
"""Before everything there is: who resumes from here gets all of it."""


class Batch(NamedTuple):
    """What is new, and the cursor to read on from."""

    changes: Sequence[Change]
    cursor: Cursor
    at: datetime
    """When it was read, by the clock that the ring turns by."""


_RECORD = text(f"""
    insert into change (slot, kind, uid, version, type, last)
    select floor(extract(epoch from clock_timestamp()) / {SLOT_LENGTH.total_seconds()})::bigint
               % {SLOTS},
           kind, uid, version, type, last
      from rows from (jsonb_to_recordset(cast(:rows as jsonb))
               as (kind text, uid text, version bigint, type text, last jsonb))
           with ordinality as new(kind, uid, version, type, last, place)
     order by place
""")  # noqa: S608


def record(session: Session, *changes: Change) -> None:
    """Say that objects changed. The caller holds the locks on the objects' rows."""
    if not changes:
        return
    rows = [
        {
            "kind": change.kind,
            "uid": change.uid,
            "version": change.version,
            "type": change.type,
            "last": change.last,
        }
        for change in changes
    ]
    batch.later(session, _RECORD, {"rows": to_text(rows)})
    session.info["changed"] = True


_START = text("select incarnation, pg_current_snapshot()::text as snapshot from store")


def start(session: Session) -> Cursor:
    """A cursor that is behind nothing: use it with a list read in the same snapshot."""
    row = session.execute(_START).one()
    return Cursor(row.incarnation, row.snapshot)


_HERE = """
    select incarnation, pg_current_snapshot() as snapshot, feed_horizon,
           clock_timestamp() as at
      from store
"""
_CHECK = text(f"""
    with here as materialized ({_HERE})
    select incarnation, snapshot::text as snapshot, feed_horizon::text as horizon from here
""")  # noqa: S608


def check(session: Session, cursor: Cursor) -> None:
    """Make sure that nothing after ``cursor`` was dropped.

    Raises:
        CursorExpiredError: it is too old or of another store; the caller lists again.
    """
    row = session.execute(_CHECK).one()
    _refuse(cursor, Cursor(row.incarnation, row.snapshot), int(row.horizon))


def _refuse(cursor: Cursor, here: Cursor, horizon: int) -> None:
    # What saw more than there is now comes from a store that was set back since.
    if cursor.incarnation != here.incarnation or not here.covers(cursor):
        raise CursorExpiredError("the cursor is of another store; list again")
    if cursor.missed(here, horizon):
        raise CursorExpiredError("the cursor is too old; list again")


_COLUMNS: Final = "seq, kind, uid, version, type, last, xid"

# Two reads, each by the index: a planner that sees one condition or the other may read all.
_SINCE = text(f"""
    with here as materialized ({_HERE}),
    fresh as (
        select {_COLUMNS} from change
         where xid >= pg_snapshot_xmax(cast(:snapshot as pg_snapshot))
        union all
        select {_COLUMNS} from change
         where xid = any (array(select pg_snapshot_xip(cast(:snapshot as pg_snapshot))))
    )
    select here.incarnation, here.snapshot::text as snapshot,
           here.feed_horizon::text as horizon, here.at,
           fresh.kind, fresh.uid, fresh.version, fresh.type, fresh.last,
           fresh.xid::text as xid
      from here
      left join fresh on true
     order by fresh.seq
     limit :limit
""")  # noqa: S608


def since(session: Session, cursor: Cursor, *, most: int = MOST_CHANGES) -> Batch:
    """Read what is new since ``cursor``, oldest first. One statement, so one snapshot.

    The ring may have turned during the statement: who may be that late calls :func:`check`
    afterwards.

    Raises:
        CursorExpiredError: it is too old or of another store, or there are more than ``most``;
            the caller lists again.
    """
    values = {"snapshot": cursor.snapshot, "limit": most + 1}
    rows = batch.answer(session, batch.rows_of(_SINCE, values))
    here = Cursor(rows[0].incarnation, rows[0].snapshot)
    _refuse(cursor, here, int(rows[0].horizon))
    if len(rows) > most:
        raise CursorExpiredError(f"more than {most} changes came since; list again")
    changes = [
        Change(row.kind, row.uid, row.version, row.type, row.last, int(row.xid))
        for row in rows
        if row.kind is not None
    ]
    return Batch(changes, here, rows[0].at)


_NEXT_SLOT = text(f"""
    select (floor(extract(epoch from clock_timestamp()) / {SLOT_LENGTH.total_seconds()})::bigint
               + 1) % {SLOTS}
""")  # noqa: S608


def turn(session: Session) -> bool:
    """Empty the partition that comes next in the ring; return whether it held anything.

    Call it more often than once in ``SLOT_LENGTH``. The horizon moves in the same
    transaction, so no reader takes a gap for silence.

    Raises:
        UnavailableError: a transaction that wrote to it long ago is still open.
    """
    slot = session.execute(_NEXT_SLOT).scalar_one()
    newest = text(f"select xid::text from change_{slot} order by xid desc limit 1")  # noqa: S608
    if session.execute(newest).first() is None:
        return False
    # Nobody writes to it under the lock; who waits for it meanwhile is kept short.
    session.execute(text("set local lock_timeout = '200ms'"))
    session.execute(text(f"lock table change_{slot} in access exclusive mode"))
    if session.execute(_NEXT_SLOT).scalar_one() != slot:
        return False
    session.execute(
        text("update store set feed_horizon = greatest(feed_horizon, cast(:xid as xid8))"),
        {"xid": session.execute(newest).scalar_one()},
    )
    session.execute(text(f"truncate change_{slot}"))
    return True


_LAG = text("""
    select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)
      from pg_stat_activity where backend_xmin is not null or backend_xid is not null
""")


def oldest_transaction_seconds(session: Session) -> float:
    """How long the oldest transaction that this role may see has been open."""
    return float(session.execute(_LAG).scalar_one())

"""The tables that are the store's own: by them state moves, whatever it is about.

The mechanisms behind ``work``, ``change``, ``lease`` and ``request`` are told in ``work.py``,
``feed.py``, ``leases.py`` and ``requests.py``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Index,
    PrimaryKeyConstraint,
    Sequence as SequenceRow,
    SmallInteger,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from hekla.store.tables import NOW, Base, JsonObject, Xid8


class WorkRow(Base):
    """An object that wants a look; see ``work.py``."""

    __tablename__ = "work"
    __table_args__ = (
        Index("work_due_idx", "kind", text("greatest(due_at, not_before)")),
        # Claimed and released all day: dead rows must go before they slow every claim.
        {
            "postgresql_with": {
                "autovacuum_vacuum_scale_factor": "0.0",
                "autovacuum_vacuum_threshold": "1000",
                "autovacuum_vacuum_cost_delay": "0",
                "fillfactor": "70",
            }
        },
    )

    kind: Mapped[str] = mapped_column(primary_key=True)
    uid: Mapped[str] = mapped_column(primary_key=True)
    due_at: Mapped[datetime]
    not_before: Mapped[datetime | None]
    wake_seq: Mapped[int] = mapped_column(BigInteger, server_default="0")
    claim_token: Mapped[UUID | None]
    claimed_until: Mapped[datetime | None]
    failures: Mapped[int] = mapped_column(server_default="0")
    urgent: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether an urgent wake came since it was claimed."""


CHANGE_SEQ: Final = SequenceRow("change_seq", metadata=Base.metadata)


class ChangeRow(Base):
    """A change of an object, in a ring of partitions; see ``feed.py``."""

    __tablename__ = "change"
    __table_args__ = (
        PrimaryKeyConstraint("slot", "seq"),
        Index("change_xid_idx", "xid"),
        {"postgresql_partition_by": "LIST (slot)"},
    )

    slot: Mapped[int] = mapped_column(SmallInteger)
    seq: Mapped[int] = mapped_column(
        BigInteger, CHANGE_SEQ, server_default=CHANGE_SEQ.next_value()
    )
    xid: Mapped[int] = mapped_column(Xid8(), server_default=func.pg_current_xact_id())
    kind: Mapped[str]
    uid: Mapped[str]
    version: Mapped[int] = mapped_column(BigInteger)
    type: Mapped[str]
    last: Mapped[JsonObject | None]
    """For DELETED: the object as it was."""


class StoreRow(Base):
    """The one row that says which store this is, and how far back the feed reaches."""

    __tablename__ = "store"
    __table_args__ = (CheckConstraint("one", name="one"),)

    one: Mapped[bool] = mapped_column(primary_key=True, server_default=text("true"))
    incarnation: Mapped[UUID] = mapped_column(server_default=func.gen_random_uuid())
    system: Mapped[str] = mapped_column(server_default="")
    """Identifies the server and its timeline; another one means a restored copy."""
    feed_horizon: Mapped[int] = mapped_column(Xid8(), server_default="0")
    """No change of this transaction or an earlier one need be in the feed any more."""


class LeaseRow(Base):
    """Who leads; see ``leases.py``."""

    __tablename__ = "lease"
    __table_args__ = (UniqueConstraint("name", "epoch"),)

    name: Mapped[str] = mapped_column(primary_key=True)
    epoch: Mapped[int] = mapped_column(BigInteger)
    holder: Mapped[str]
    until: Mapped[datetime]
    released: Mapped[bool] = mapped_column(server_default=text("false"))


class RequestRow(Base):
    """A mutating call that was answered, so that its repetition does nothing twice."""

    __tablename__ = "request"
    __table_args__ = (PrimaryKeyConstraint("caller", "method", "id"),)

    caller: Mapped[str]
    method: Mapped[str]
    id: Mapped[str]
    body_hash: Mapped[bytes]
    uids: Mapped[Any] = mapped_column(JSONB)
    """Uids of the objects the answer is rebuilt from."""
    warnings: Mapped[Any] = mapped_column(JSONB, server_default=text("'[]'::jsonb"))
    incarnation: Mapped[UUID]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW, index=True)

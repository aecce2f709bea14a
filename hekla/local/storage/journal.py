"""What makes a write last: an SQLite file that holds the newest version of every object.

One thread writes it, a batch at a time, and each batch is one transaction that is on the
disk (WAL, ``synchronous=FULL``) before anybody is told that it was done.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_SCHEMA: Final = """
create table if not exists object (
    resource text not null,
    namespace text not null,
    name text not null,
    raw blob not null,
    primary key (resource, namespace, name)
) without rowid;
create table if not exists mark (name text primary key, value integer not null) without rowid;
insert or ignore into mark values ('format', 1), ('version', 0);
"""
_FORMAT: Final = 1


class Row(NamedTuple):
    """The newest state of one object; ``raw`` is None once it is gone."""

    resource: str
    namespace: str
    name: str
    raw: bytes | None


class JournalError(Exception):
    """The file cannot be used or written."""


class Journal:
    """The file. Used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        try:
            self._database = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=0
            )
            # FULL, not NORMAL: in WAL mode the latter does not sync the log on commit.
            for setting in (
                "journal_mode = wal",
                "synchronous = full",
                "wal_autocheckpoint = 4000",
                "journal_size_limit = 67108864",
            ):
                self._database.execute(f"pragma {setting}")
            self._database.executescript(_SCHEMA)
            found = self._mark("format")
        except sqlite3.Error as error:
            raise JournalError(f"cannot use {path}: {error}") from error
        if found != _FORMAT:
            raise JournalError(f"{path} has format {found}; this program knows {_FORMAT}")

    def _mark(self, name: str) -> int:
        [value] = self._database.execute(
            "select value from mark where name = ?", [name]
        ).fetchone()
        return int(value)

    def version(self) -> int:
        """The resource version of the last write."""
        return self._mark("version")

    def rows(self) -> Iterator[Row]:
        """Every object."""
        for row in self._database.execute("select resource, namespace, name, raw from object"):
            yield Row(*row)

    def write(self, rows: Sequence[Row], version: int) -> None:
        """Write all of ``rows``, at most one an object, or none of them.

        Raises:
            JournalError: nothing was written.
        """
        kept = [row for row in rows if row.raw is not None]
        gone = [row[:3] for row in rows if row.raw is None]
        database = self._database
        try:
            database.execute("begin immediate")
            database.executemany("insert or replace into object values (?, ?, ?, ?)", kept)
            database.executemany(
                "delete from object where (resource, namespace, name) = (?, ?, ?)", gone
            )
            database.execute("update mark set value = ? where name = 'version'", [version])
            database.execute("commit")
        except sqlite3.Error as error:
            if database.in_transaction:
                database.execute("rollback")
            raise JournalError(f"the store cannot be written: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._database.close()

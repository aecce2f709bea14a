"""Writers that do all that makes a feed hard: out of order, late, taken back, in parts."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import uuid4

from sqlalchemy import text

from hekla.store import feed
from hekla.store.database import Database, Session
from hekla.store.feed import Change

KIND: Final = "queue"


class Told(NamedTuple):
    """A change that was committed."""

    uid: str
    version: int
    type: str


def load(session: Session, uids: Sequence[str] | None) -> Mapping[str, int]:
    """Versions by uid: a loader for a hub."""
    if uids is None:
        rows = session.execute(text("select uid::text, version from queue"))
    else:
        rows = session.execute(
            text("select uid::text, version from queue where uid = any(cast(:uids as uuid[]))"),
            {"uids": list(uids)},
        )
    return {uid: int(version) for uid, version in rows}


class TakenBackError(Exception):
    """Ends a transaction that leaves nothing behind."""


class Writers:
    """Any number of threads that add, change and remove the same objects."""

    def __init__(self, database: Database, *, objects: int, seed: int) -> None:
        self._database = database
        self._names = [f"q{number:03}" for number in range(objects)]
        self._seed = seed
        self._lock = threading.Lock()
        self.told: list[Told] = []
        """What was committed, each change once."""
        self.errors: list[Exception] = []

    def run(self, *, threads: int, transactions: int) -> list[threading.Thread]:
        """Start the writers."""
        started = [
            threading.Thread(target=self._write, args=(number, transactions))
            for number in range(threads)
        ]
        for thread in started:
            thread.start()
        return started

    def add(self, name: str) -> str:
        """Add one object; return its uid."""
        with self._database.transaction() as session:
            [told] = self.touch(session, [name])
        self.told.append(told)
        return told.uid

    def _write(self, number: int, transactions: int) -> None:
        dice = random.Random(self._seed * 1000 + number)
        shapes: Sequence[Callable[[random.Random], list[Told]]] = (
            self._plain,
            self._xid_first,
            self._savepoint,
            self._slow,
            self._taken_back,
        )
        try:
            for _ in range(transactions):
                told = dice.choice(shapes)(dice)
                with self._lock:
                    self.told.extend(told)
        except Exception as error:
            self.errors.append(error)

    def _plain(self, dice: random.Random) -> list[Told]:
        with self._database.transaction() as session:
            return self._some(session, dice)

    def _xid_first(self, dice: random.Random) -> list[Told]:
        with self._database.transaction() as session:
            session.execute(text("select pg_current_xact_id()"))
            _dawdle(session, dice)
            return self._some(session, dice)

    def _savepoint(self, dice: random.Random) -> list[Told]:
        with self._database.transaction() as session:
            first = self.touch(session, [self._names[0]])
            kept = session.begin_nested()
            told = self.touch(session, self._names[1:3])
            kept.commit()
            lost = session.begin_nested()
            self.touch(session, self._names[3:6])
            lost.rollback()
            return first + told + self.touch(session, self._names[6:7])

    def _slow(self, dice: random.Random) -> list[Told]:
        with self._database.transaction() as session:
            told = self._some(session, dice)
            _dawdle(session, dice)
            return told

    def _taken_back(self, dice: random.Random) -> list[Told]:
        try:
            with self._database.transaction() as session:
                self._some(session, dice)
                raise TakenBackError
        except TakenBackError:
            return []

    def _some(self, session: Session, dice: random.Random) -> list[Told]:
        names = sorted(dice.sample(self._names, dice.randint(1, 6)))
        if dice.random() < 0.2:
            return self.drop(session, names[:1]) + self.touch(session, names[1:])
        return self.touch(session, names)

    def touch(self, session: Session, names: Sequence[str]) -> list[Told]:
        """Change objects, or add those that are not there; in the order of their names."""
        rows = session.execute(
            text(
                "insert into queue (uid, name, spec)"
                " select uid, name, '{}' from unnest(cast(:uids as uuid[]),"
                " cast(:names as text[])) as new(uid, name) order by name"
                " on conflict (name) do update set version = queue.version + 1"
                " returning uid::text, version"
            ),
            {"uids": [str(uuid4()) for _ in names], "names": list(names)},
        )
        told = [
            Told(uid, int(version), feed.ADDED if version == 1 else feed.MODIFIED)
            for uid, version in rows
        ]
        feed.record(session, *[Change(KIND, *one) for one in told])
        return told

    def drop(self, session: Session, names: Sequence[str]) -> list[Told]:
        rows = session.execute(
            text("delete from queue where name = any(:names) returning uid::text, version + 1"),
            {"names": list(names)},
        )
        told = [Told(uid, int(version), feed.DELETED) for uid, version in rows]
        feed.record(
            session, *[Change(KIND, *one, last={"version": one.version}) for one in told]
        )
        return told


def _dawdle(session: Session, dice: random.Random) -> Any:
    """Keep the transaction open for some work of the server's."""
    return session.execute(
        text("select count(*) from generate_series(1, :rows)"),
        {"rows": dice.randint(1, 20_000)},
    ).scalar_one()

"""Watchers that stop and resume at random beside writers that do as they please."""

from __future__ import annotations

import random
import threading
import time
from contextlib import closing, suppress
from uuid import uuid4

from sqlalchemy import text

from hekla.domain.errors import ExhaustedError
from hekla.store import feed
from hekla.store.database import Database
from hekla.store.feed import Change
from hekla.store.hub import Hub, Item
from tests.integration.store.test_store_feed import open_elsewhere
from tests.support.feed_writers import KIND, Writers, load
from tests.support.hubs import reading
from tests.support.postgres import Server

LONGEST_SECONDS = 60.0


class Follower:
    """A watcher that stops and resumes at random, and notes what it is told."""

    def __init__(self, hubs: list[Hub], number: int, *, last: str) -> None:
        self._hubs = hubs
        self._dice = random.Random(number)
        self._last = last
        self._cursors = [""]
        self.newest: dict[str, int] = {}
        self.gone: set[str] = set()
        self.resumed = 0
        self.errors: list[BaseException] = []
        self._deadline = time.monotonic() + LONGEST_SECONDS

    def _going(self) -> bool:
        return time.monotonic() < self._deadline

    def run(self) -> None:
        """Follow until the last object is told."""
        try:
            while not self._follow():
                assert self._going(), "the end was never told"
                self.resumed += 1
        except BaseException as error:  # assertions too
            self.errors.append(error)

    def _follow(self) -> bool:
        # Now and then one that it had a while ago: it was written down, and nothing since.
        cursor = self._dice.choice(self._cursors[-3:])
        if not cursor:
            self.newest.clear()
            self.gone.clear()
        stream = self._dice.choice(self._hubs).watch(KIND, cursor, going=self._going)
        steps = self._dice.randint(1, 100)
        session: dict[str, int] = {}
        with closing(stream), suppress(ExhaustedError):
            for position, item in stream:
                if item is not None and self._note(item, session):
                    return True
                self._cursors.append(str(position))
                steps -= 1
                if steps == 0:
                    break
        return False

    def _note(self, item: Item, session: dict[str, int]) -> bool:
        version = item.object["version"] if item.type == "DELETED" else item.object
        assert version > session.get(item.uid, 0), "it grows as long as nothing is resumed"
        assert version >= self.newest.get(item.uid, 0), "and never goes back"
        assert item.uid not in self.gone or item.type == "DELETED", "what is gone stays so"
        session[item.uid] = self.newest[item.uid] = version
        if item.type == "DELETED":
            self.gone.add(item.uid)
        return item.uid == self._last


def test_watchers_miss_nothing_and_never_go_back_whatever_anybody_does(
    database: Database, postgres: Server
) -> None:
    """I8, with an end that whoever saw it has seen everything before."""
    hubs = [Hub(database, {KIND: load}) for _ in range(2)]
    writers = Writers(database, objects=40, seed=2)
    end = str(uuid4())
    followers = [Follower(hubs, number, last=end) for number in range(4)]

    with open_elsewhere(postgres), reading(*hubs):
        following = [threading.Thread(target=one.run) for one in followers]
        for thread in following:
            thread.start()
        writing = writers.run(threads=4, transactions=60)
        for thread in writing:
            thread.join()
        with database.transaction() as session:
            session.execute(
                text("insert into queue (uid, name, spec) values (:uid, 'the end', '{}')"),
                {"uid": end},
            )
            feed.record(session, Change(KIND, end, 1, feed.ADDED))
        for thread in following:
            thread.join()

    assert writers.errors == []
    assert [one.errors for one in followers] == [[]] * 4
    assert len(writers.told) > 400
    with database.transaction() as session:
        there = load(session, None)
    ends = {one.uid: one.version for one in writers.told if one.type == "DELETED"}
    for one in followers:
        assert {uid: one.newest[uid] for uid in there} == there, "the last state arrived"
        known = set(one.newest) & set(ends)
        assert {uid: one.newest[uid] for uid in known} == {uid: ends[uid] for uid in known}
        assert known == one.gone, "and so did the delete of all that was ever told"
        assert one.resumed > 0

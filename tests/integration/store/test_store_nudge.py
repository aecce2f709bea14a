"""Hints: quick when they can be heard, and missed by nobody who polls."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import psycopg
from sqlalchemy import text

from hekla.store import work
from hekla.store.database import Database
from hekla.store.nudge import FLOW_CHANNEL, LEAST_GAP_SECONDS, Nudge
from tests.support.store import add_job, value
from tests.support.waiting import wait_until

LISTENERS = (
    "select count(*) from pg_stat_activity"
    " where datname = current_database() and query = 'listen hekla_change'"
)


def wait_for_listeners(database: Database, count: int) -> None:
    def listening() -> bool:
        with database.transaction() as session:
            return bool(value(session, LISTENERS) == count)

    wait_until(listening, what=f"{count} processes to listen")


def alive(database: Database, pids: Sequence[int]) -> bool:
    with database.transaction() as session:
        there = "select count(*) from pg_stat_activity where pid = any(:pids)"
        return bool(value(session, there, {"pids": list(pids)}))


def test_a_hint_wakes_its_own_process_at_once(direct: str) -> None:
    nudge = Nudge(direct)  # not running: nothing is sent or heard
    seen = nudge.count

    threading.Timer(0, nudge.poke).start()

    assert nudge.wait(seen, timeout=60) == seen + 1


def test_who_waits_without_a_hint_goes_on_in_time(direct: str) -> None:
    nudge = Nudge(direct)
    nudge.poke()

    assert nudge.wait(nudge.count, timeout=0.01) == nudge.count
    assert nudge.wait(nudge.count - 1, timeout=60) == nudge.count, "it came before"


def test_a_change_is_hinted_to_other_processes(database: Database, direct: str) -> None:
    with Nudge(direct).running() as here, Nudge(direct).running() as there:
        wait_for_listeners(database, 2)
        changing = Database(direct)
        changing.on_change(here.poke)
        seen = there.count

        add_job(changing)

        assert there.wait(seen, timeout=60) > seen, "nobody looks by himself here"
        changing.close()


def test_hints_on_another_channel_are_for_others(database: Database, direct: str) -> None:
    with (
        Nudge(direct).running() as here,
        Nudge(direct, FLOW_CHANNEL).running() as apart,
        Nudge(direct).running() as there,
    ):
        wait_for_listeners(database, 2)
        wait_until(lambda: apart.count > 0, what="its own first hint")
        seen, others = there.count, apart.count
        here.poke()
        wait_until(lambda: there.count > seen, what="the hint to arrive")

        assert apart.count == others


def test_many_hints_at_once_are_sent_as_few(database: Database, direct: str) -> None:
    with Nudge(direct).running() as here, Nudge(direct).running() as there:
        wait_for_listeners(database, 2)
        known, seen, before = here.count, there.count, time.monotonic()
        for _ in range(10_000):
            here.poke()
        told = here.count - known
        wait_until(lambda: there.count > seen, what="hints to arrive")
        heard, seconds = there.count - seen, time.monotonic() - before

    assert told >= 10_000, "each of them in the process itself"
    assert heard <= seconds / LEAST_GAP_SECONDS + 2


def test_hints_come_again_after_their_connections_broke(
    database: Database, direct: str
) -> None:
    with Nudge(direct).running() as here, Nudge(direct).running() as there:
        wait_for_listeners(database, 2)
        with database.transaction() as session:
            broken = session.scalars(
                text(
                    "select pid from pg_stat_activity"
                    " where datname = current_database() and query ~ '^(listen|notify)'"
                )
            ).all()
            session.execute(
                text("select pg_terminate_backend(unnest(:pids))"), {"pids": broken}
            )
        wait_until(lambda: not alive(database, broken), what="the connections to break")
        seen = there.count
        here.poke()
        wait_for_listeners(database, 2)

        def heard() -> bool:
            here.poke()
            return there.count > seen

        wait_until(heard, what="a hint to arrive")


def test_where_nobody_can_listen_the_process_still_hints_itself() -> None:
    nudge = Nudge("postgresql+psycopg://hekla@/none?host=/nonexistent")
    before = set(threading.enumerate())

    with nudge.running():
        seen = nudge.count
        nudge.poke()
        assert nudge.wait(seen, timeout=60) > seen

    assert set(threading.enumerate()) <= before, "and it ends, as little as it can connect"


def test_no_hint_is_sent_in_the_transaction_that_gives_the_reason(
    database: Database, direct: str
) -> None:
    with psycopg.connect(direct, autocommit=True) as listener:
        listener.execute("listen hekla_change")
        with database.transaction() as session:
            work.wake(session, "thing", "a")
        add_job(database)
        with database.transaction() as session:
            session.execute(text("notify hekla_change, 'the end'"))

        first = next(listener.notifies(timeout=60))

    assert first.payload == "the end", "notifications come in the order of commits"

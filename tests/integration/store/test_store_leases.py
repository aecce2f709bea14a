"""Leases and what only their holder may write."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlalchemy import text

from hekla.domain.errors import PreconditionError
from hekla.store import binds, leases
from hekla.store.binds import BindRecord
from hekla.store.database import Database
from hekla.store.leases import Taken
from tests.support.store import MINUTE, value, wait_for_waiting

EXPIRED = timedelta(seconds=-1)
NAME = "scheduler"


def acquire(
    database: Database, holder: str = "a", ttl: timedelta = MINUTE, name: str = NAME
) -> Taken | None:
    with database.transaction() as session:
        return leases.acquire(session, name, holder=holder, ttl=ttl)


def renew(database: Database, epoch: int, ttl: timedelta = MINUTE) -> bool:
    with database.transaction() as session:
        return leases.renew(session, NAME, epoch=epoch, ttl=ttl)


def release(database: Database, epoch: int) -> None:
    with database.transaction() as session:
        leases.release(session, NAME, epoch=epoch)


def record(database: Database, epoch: int, *pods: str, node: str = "n1") -> None:
    with database.transaction() as session:
        binds.record(session, NAME, epoch=epoch, binds=[bind(pod, node) for pod in pods])


def settle(database: Database, epoch: int, *, bound: list[str], failed: list[str]) -> None:
    with database.transaction() as session:
        leases.hold(session, NAME, epoch=epoch)
        binds.settle(session, bound=bound, failed=failed)


def open_pods(database: Database) -> dict[str, str]:
    with database.transaction() as session:
        return {one.pod_uid: one.node for one in binds.open_records(session)}


def bind(pod: str, node: str = "n1") -> BindRecord:
    return BindRecord(pod, "default", f"name-{pod}", "group", node, {"cpu": 100})


def test_a_free_lease_is_taken_and_a_held_one_is_not(database: Database) -> None:
    with database.transaction() as session:
        assert leases.get(session, NAME) is None

    assert acquire(database, "a") == Taken(1, clean=True)
    assert acquire(database, "b") is None
    assert acquire(database, "b", name="mirror") == Taken(1, clean=True)

    with database.transaction() as session:
        held = leases.get(session, NAME)
    assert held is not None
    assert (held.holder, held.epoch, held.released) == ("a", 1, False)
    assert timedelta(seconds=50) < held.remaining <= MINUTE


def test_a_takeover_raises_the_epoch_and_ends_the_old_one(database: Database) -> None:
    acquire(database, "a", EXPIRED)

    assert acquire(database, "b") == Taken(2, clean=False)
    assert not renew(database, 1)
    with database.transaction() as session, pytest.raises(PreconditionError, match="epoch 1"):
        leases.hold(session, NAME, epoch=1)
    with database.transaction() as session:
        leases.hold(session, NAME, epoch=2)


def test_an_expired_lease_is_not_renewed_even_if_nobody_took_it(database: Database) -> None:
    acquire(database, "a", EXPIRED)

    assert not renew(database, 1)


def test_a_renewed_lease_lasts(database: Database) -> None:
    acquire(database, "a", timedelta(seconds=10))

    assert renew(database, 1)

    with database.transaction() as session:
        held = leases.get(session, NAME)
    assert held is not None
    assert held.remaining > timedelta(seconds=30)
    assert acquire(database, "b") is None


def test_a_lease_that_was_given_up_is_taken_at_once_and_clean(database: Database) -> None:
    acquire(database, "a")

    release(database, 1)

    assert not renew(database, 1)
    with database.transaction() as session, pytest.raises(PreconditionError):
        leases.hold(session, NAME, epoch=1)
    assert acquire(database, "b") == Taken(2, clean=True)


def test_an_epoch_that_is_over_gives_nothing_up(database: Database) -> None:
    acquire(database, "a", EXPIRED)
    acquire(database, "b")

    release(database, 1)

    assert acquire(database, "c") is None


def test_a_takeover_waits_for_a_write_under_the_lease(database: Database) -> None:
    acquire(database, "a", EXPIRED)
    taken: list[Taken | None] = []
    seen: list[dict[str, str]] = []

    def take_over() -> None:
        taken.append(acquire(database, "b"))
        seen.append(open_pods(database))

    with database.transaction() as session:
        binds.record(session, NAME, epoch=1, binds=[bind("p")])
        other = threading.Thread(target=take_over)
        other.start()
        wait_for_waiting(database)
        assert taken == []
    other.join()

    assert taken == [Taken(2, clean=False)]
    assert seen == [{"p": "n1"}], "the new leader sees what the old one wrote last"


def test_renewals_do_not_wait_for_writes_under_the_lease(database: Database) -> None:
    acquire(database, "a")

    with database.transaction() as session:
        leases.hold(session, NAME, epoch=1)
        with database.transaction() as renewing:
            renewing.execute(text("set local lock_timeout = '1s'"))
            assert leases.renew(renewing, NAME, epoch=1, ttl=MINUTE)


def test_of_many_that_want_a_lease_one_gets_it(database: Database) -> None:
    acquire(database, "old", EXPIRED)
    taken: list[Taken | None] = []

    def take(holder: str) -> None:
        taken.append(acquire(database, holder))

    takers = [threading.Thread(target=take, args=(f"h{number}",)) for number in range(6)]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()

    assert [one for one in taken if one is not None] == [Taken(2, clean=False)]


def test_only_the_leader_writes_placements(database: Database) -> None:
    acquire(database, "a", EXPIRED)
    record(database, 1, "p", "q")
    acquire(database, "b")

    with pytest.raises(PreconditionError):
        record(database, 1, "r")

    record(database, 2)
    with database.transaction() as session:
        found = binds.open_records(session)
    assert found == [bind("p"), bind("q")]


def test_an_answer_settles_a_placement(database: Database) -> None:
    acquire(database, "a")
    record(database, 1, "p", "q", "r")

    settle(database, 1, bound=["p"], failed=["q"])

    assert open_pods(database) == {"r": "n1"}
    with database.transaction() as session:
        assert [one.pod_uid for one in binds.recent_records(session, within=MINUTE)] == ["p"]
        assert binds.recent_records(session, within=EXPIRED) == []


def test_a_pod_that_failed_to_bind_is_placed_again_and_a_bound_one_is_not(
    database: Database,
) -> None:
    acquire(database, "a")
    record(database, 1, "p", "q")
    settle(database, 1, bound=["p"], failed=["q"])

    record(database, 1, "p", "q", node="n2")

    assert open_pods(database) == {"q": "n2"}


def test_a_late_answer_to_an_old_leader_leaves_the_new_one_alone(database: Database) -> None:
    acquire(database, "a", EXPIRED)
    record(database, 1, "p")
    acquire(database, "b")
    record(database, 2, "p", node="n2")

    with pytest.raises(PreconditionError):
        settle(database, 1, bound=[], failed=["p"])

    assert open_pods(database) == {"p": "n2"}


def test_settled_placements_are_forgotten_when_they_are_old(database: Database) -> None:
    acquire(database, "a")
    record(database, 1, "p", "q", "r", "s")
    settle(database, 1, bound=["p", "q"], failed=["r"])

    with database.transaction() as session:
        assert binds.prune(session, older_than=MINUTE) == 0
        assert binds.prune(session, older_than=EXPIRED, limit=2) == 2
        assert binds.prune(session, older_than=EXPIRED, limit=2) == 1
        assert value(session, "select count(*) from bind") == 1
    assert open_pods(database) == {"s": "n1"}

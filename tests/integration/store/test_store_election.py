"""Who leads, and what it may write."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hekla.domain.errors import PreconditionError
from hekla.store.database import Database
from hekla.store.election import Election
from tests.support.waiting import wait_until

SHORT = timedelta(milliseconds=200)


def may_write(database: Database, election: Election) -> bool:
    try:
        with database.transaction() as session:
            election.hold(session)
    except PreconditionError:
        return False
    return True


def test_one_leads_until_it_resigns(database: Database) -> None:
    first, second = (Election(database, "l", holder=name) for name in ("first", "second"))

    assert first.stand()
    assert first.stand(), "it keeps what it has"
    assert not second.stand()
    assert (may_write(database, first), may_write(database, second)) == (True, False)

    first.resign()

    assert not first.leading
    assert second.stand(), "nobody waits for a lease that was given up"
    assert (may_write(database, first), may_write(database, second)) == (False, True)


def test_one_that_stands_still_is_followed_and_writes_no_more(database: Database) -> None:
    first = Election(database, "l", holder="first", ttl=SHORT)
    second = Election(database, "l", holder="second", ttl=SHORT)
    assert first.stand()

    wait_until(second.stand, what="the lease run out")

    assert not may_write(database, first)
    assert not first.stand()
    assert not first.leading


def test_what_was_begun_in_one_term_writes_nothing_in_the_next(database: Database) -> None:
    election = Election(database, "l", holder="first")
    assert election.stand()
    before = election.term()
    election.resign()
    assert election.stand()

    assert may_write(database, election)
    with database.transaction() as session:
        election.term()(session)
    with pytest.raises(PreconditionError), database.transaction() as session:
        before(session)


def test_one_that_lost_the_lease_does_not_take_it_again_at_once(database: Database) -> None:
    first = Election(database, "l", holder="first", ttl=SHORT)
    assert first.stand()
    wait_until(lambda: not first.leading, what="the lease run out")

    assert not first.stand(), "what it began under the old one must end"
    assert not may_write(database, first)
    assert first.stand()


def test_while_postgres_is_away_nobody_leads_for_longer_than_the_lease() -> None:
    gone = Database("postgresql://nobody@127.0.0.1:1/none", pool_timeout=0.1)
    election = Election(gone, "l", holder="first", ttl=SHORT)

    assert not election.stand()
    with pytest.raises(Exception, match="not reachable"):
        may_write(gone, election)
    election.resign()
    gone.close()

"""Taking the lease, keeping it from the I/O process, and losing it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from hekla.kube.fence import Fence, Progress
from hekla.lifecycle import repeating
from hekla.store import binds, leases
from hekla.store.binds import BindRecord
from hekla.store.database import Database
from services.scheduler.campaign import LEASE, Campaign
from services.scheduler.events import Elected
from services.scheduler.inbox import Inbox
from services.scheduler.renewal import Renewal
from tests.support.waiting import wait_until

TTL = timedelta(seconds=1)
PAUSE = timedelta(milliseconds=300)


class Candidate:
    """One that runs for the lease."""

    def __init__(self, database: Database, holder: str) -> None:
        self.inbox = Inbox()
        self.fence = Fence()
        self.hindrance: str | None = None
        self.at_rest = True
        self.campaign = Campaign(
            database,
            self.inbox,
            self.fence,
            holder=holder,
            ttl=TTL,
            takeover_pause=PAUSE,
            hindrance=lambda: self.hindrance,
            at_rest=lambda: self.at_rest,
        )

    def elected(self) -> Elected | None:
        """Look once; what came of it."""
        self.campaign.look()
        events = [event for event in self.inbox.drain() if isinstance(event, Elected)]
        return events[0] if events else None


def held(database: Database) -> leases.Lease:
    with database.transaction() as session:
        found = leases.get(session, LEASE)
    assert found is not None
    return found


def expire(database: Database, epoch: int) -> None:
    """Let the lease have run out."""
    with database.transaction() as session:
        leases.renew(session, LEASE, epoch=epoch, ttl=-TTL)


@contextmanager
def renewing(url: str, holder: str, fence: Fence, progress: Progress) -> Iterator[None]:
    """Renew the holder's lease until the block ends."""
    stop = threading.Event()
    renewal = Renewal(url, LEASE, holder, ttl=TTL, stall_timeout=timedelta(milliseconds=400))
    thread = threading.Thread(target=renewal, args=(stop, fence, progress))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def moving(progress: Progress) -> Iterator[None]:
    """Get on until the block ends."""

    def move() -> bool:
        progress.move()
        return False

    with repeating("moving", move, idle=timedelta(milliseconds=50)):
        yield


def wait_for_renewal(fence: Fence) -> None:
    """Wait until the fence comes down later than it would by now."""

    def comes_down() -> float:
        return time.monotonic() + fence.left()

    before = comes_down()
    wait_until(lambda: comes_down() > before + 0.05, what="a renewal")


def test_one_of_two_leads_and_the_fence_is_up_for_it_alone(database: Database) -> None:
    first, second = Candidate(database, "first"), Candidate(database, "second")

    elected = first.elected()

    assert elected is not None
    assert elected.epoch == 1
    assert second.elected() is None
    assert second.campaign.leader == "first"
    assert 0 < first.fence.left() <= TTL.total_seconds()
    assert second.fence.left() == 0


def test_who_is_not_ready_does_not_run(database: Database) -> None:
    candidate = Candidate(database, "first")
    candidate.hindrance = "the cache is not filled"

    assert candidate.elected() is None


def test_a_lease_that_ran_out_is_taken_with_a_pause_and_a_released_one_without(
    database: Database,
) -> None:
    first, second, third = (Candidate(database, it) for it in ("first", "second", "third"))
    first.elected()
    expire(database, 1)
    after_death = second.elected()
    second.campaign.step_down(2)
    assert second.elected() is None, "it only releases the lease"
    after_release = third.elected()

    assert after_death is not None
    assert after_release is not None
    assert after_death.epoch == 2
    assert after_release.epoch == 3
    assert [after_death.pause, after_release.pause] == [PAUSE, timedelta()]


def test_the_lease_is_not_released_while_something_is_under_way(database: Database) -> None:
    candidate = Candidate(database, "first")
    candidate.elected()
    candidate.at_rest = False
    candidate.campaign.step_down(1)
    candidate.campaign.look()
    assert not held(database).released

    candidate.at_rest = True
    candidate.campaign.look()

    assert held(database).released
    assert candidate.fence.left() == 0


def test_a_lease_of_ones_own_that_one_does_not_know_of_is_taken_anew(
    database: Database,
) -> None:
    with database.transaction() as session:
        leases.acquire(session, LEASE, holder="first", ttl=TTL)

    elected = Candidate(database, "first").elected()

    assert elected is not None
    assert elected.epoch == 2


def test_who_retires_releases_the_lease_and_runs_no_more(database: Database) -> None:
    candidate = Candidate(database, "first")
    candidate.elected()

    candidate.campaign.retire()
    candidate.campaign.look()

    assert candidate.campaign.retired
    assert held(database).released
    assert candidate.elected() is None


def test_the_elected_learns_what_was_written_down_before(database: Database) -> None:
    first, second = Candidate(database, "first"), Candidate(database, "second")
    first.elected()
    with database.transaction() as session:
        records = [BindRecord(uid, "ns", uid, "g", "n") for uid in ("open", "done", "failed")]
        binds.record(session, LEASE, epoch=1, binds=records)
        binds.settle(session, bound=["done"], failed=["failed"])
    expire(database, 1)

    elected = second.elected()

    assert elected is not None
    assert [it.pod_uid for it in elected.unsettled] == ["open"]
    assert [it.pod_uid for it in elected.recent] == ["done"]


def test_the_lease_is_kept_while_the_scheduler_moves_and_lost_when_it_stops(
    database: Database,
) -> None:
    candidate, progress = Candidate(database, "first"), Progress()
    candidate.elected()
    before = held(database)
    with renewing(database.url, "first", candidate.fence, progress):
        with moving(progress):
            wait_for_renewal(candidate.fence)
        wait_until(lambda: candidate.fence.left() == 0, what="the fence to come down")
    assert held(database).epoch == before.epoch
    wait_until(lambda: Candidate(database, "second").elected(), what="another to take it")


def test_a_lease_that_another_took_is_noticed_by_the_next_renewal(
    database: Database,
) -> None:
    candidate, progress = Candidate(database, "first"), Progress()
    candidate.elected()
    with renewing(database.url, "first", candidate.fence, progress), moving(progress):
        wait_for_renewal(candidate.fence)
        expire(database, 1)
        assert Candidate(database, "second").elected() is not None
        candidate.fence.extend(float("inf"))

        wait_until(lambda: candidate.fence.left() == 0, what="the fence to come down")

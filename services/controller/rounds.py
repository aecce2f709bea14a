"""Looks at several jobs in one transaction, where nothing special happens to them.

A transaction, and a request to Kubernetes, cost several times what most looks decide and write.
So jobs that are due together share them. A job with anything special about it gets a look of
its own (``passes.py``): pods that are to go, commands, outcomes that policies hear of.

Many rows are locked here, so the order is everybody's: jobs, then their attempts, then pod
groups, then work, each by uid.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from hekla import failpoint
from hekla.domain.attempt import Attempt
from hekla.domain.errors import DomainError
from hekla.store import attempts, batch, pod_groups, work
from hekla.store.database import Database, Session
from hekla.store.jobs import StoredJob
from hekla.store.work import Claim
from services.controller.acting import Acted, Actor, Acts
from services.controller.core.following import Chain, follow, is_plain
from services.controller.passes import Outcome, PassLog, count, rest_after
from services.controller.reading import Seen, read_many
from services.controller.recording import record

ROOM: Final = 50
"""Who wants more pods than this has a look of its own."""


class _Look(NamedTuple):
    """What was decided about one job of a round, and written down."""

    claim: Claim
    before: StoredJob
    stored: StoredJob
    chain: Chain
    planned: Sequence[Attempt]


class Rounds:
    """Makes rounds of looks, for any number of workers."""

    def __init__(
        self, database: Database, actor: Actor, told: PassLog, *, lease: timedelta
    ) -> None:
        self._database = database
        self._actor = actor
        self._told = told
        self._lease = lease

    def look(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """Look at these jobs; give back the claims but of those that want a look of their own.

        Raises:
            Exception: some were not looked at. Those claims are still held.
        """
        wall, began = datetime.now().astimezone(), time.monotonic()
        in_order = sorted(claims, key=lambda claim: claim.uid)
        with self._database.transaction() as session:
            looks = self._write(session, in_order, began)
            spent = time.monotonic() - began
        rest = rest_after(began)
        failpoint.hit("controller.commit-unknown")
        for one in looks:
            count(one.before, one.chain)
        failpoint.hit("controller.recorded")
        for one in looks:
            if not one.planned:
                self._told.ended(one.claim, wall, spent, Outcome.DONE, slices=1)
        making = [one for one in looks if one.planned]
        made = self._make(making, rest)
        spent = time.monotonic() - began
        for one in made:
            self._told.ended(one.claim, wall, spent, Outcome.DONE, slices=1)
        done = {one.claim for one in looks if not one.planned} | {one.claim for one in made}
        return [claim for claim in claims if claim not in done]

    def _write(
        self, session: Session, claims: Sequence[Claim], began: float
    ) -> Sequence[_Look]:
        """Decide about the plain ones, and write that down."""
        seen = read_many(session, claims, limit=ROOM)
        plain = [
            (claim, one, chain)
            for claim, one in zip(claims, seen, strict=True)
            if not isinstance(one, DomainError)
            and is_plain(chain := follow(one.observed, one.at))
            and self._fits(one, chain)
        ]
        going = {
            claim: attempts.deleting(one.stored.uid, limit=1)
            for claim, one, _ in plain
            if one.observed.others
        }
        batch.ask(session, *going.values())
        looks: list[_Look] = []
        groups: list[UUID] = []
        for claim, one, chain in plain:
            if claim in going and going[claim].answer:
                continue
            planned, stored, gone = record(session, one.stored, chain, one.at)
            looks.append(_Look(claim, one.stored, stored, chain, planned))
            groups.extend(gone)
        pod_groups.remove(session, *groups)
        for look in looks:
            if look.planned:
                work.extend(session, look.claim, self._lease)
            else:
                _release(session, look, rest_after(began))
        return looks

    def _fits(self, one: Seen, chain: Chain) -> bool:
        if not chain.decided.slots:
            return True
        small = len(chain.decided.slots) < ROOM and one.stored.wait is None
        return small and self._actor.makes_pods_at_once(one.stored)

    def _make(self, looks: Sequence[_Look], rest: timedelta) -> Sequence[_Look]:
        """Make the pods, and write down that it was done, where all went well."""
        if not looks:
            return []
        acted = self._actor.act_on([(one.stored, Acts(create=one.planned)) for one in looks])
        failpoint.hit("controller.acted")
        went_well = [
            (look, one) for look, one in zip(looks, acted, strict=True) if _is_whole(one)
        ]
        with self._database.transaction() as session:
            attempts.confirm(
                session, [each for _, one in went_well for each in one.done.confirmed]
            )
            for look, _ in went_well:
                _release(session, look, rest)
        return [look for look, _ in went_well]


def _release(session: Session, look: _Look, rest: timedelta) -> None:
    work.release(session, look.claim, due_at=look.chain.due_at, rest=rest)


def _is_whole(acted: Acted) -> bool:
    done = acted.done
    return (
        not done.failed
        and done.custom_uid is None
        and len(done.confirmed) == len(acted.acts.create)
    )

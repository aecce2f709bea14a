"""What PodGroupService does, without gRPC."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from hekla.api import bounds
from hekla.api.naming import named
from hekla.api.pod_group import PodGroup, PodGroupStatus
from hekla.domain import selector
from hekla.domain.errors import InvalidError, NotFoundError, PreconditionError
from hekla.domain.names import Key
from hekla.rpc.admission import CREATE, Admission
from hekla.store import feed, leases, pod_groups
from hekla.store.database import Database, Session
from hekla.store.feed import Cursor
from hekla.store.objects import Place
from hekla.store.once import Asking, done_before, once
from hekla.store.requests import Answered

SCHEDULER_LEASE: Final = "scheduler"
"""The lease whose epoch reports carry."""


class GroupPage(NamedTuple):
    """A page of groups, where it ended unless it was the last, and where to watch from."""

    groups: Sequence[PodGroup]
    end: Place | None
    cursor: Cursor


class PodGroupCalls:
    """Calls on pod groups."""

    def __init__(self, database: Database, admission: Admission) -> None:
        self._database = database
        self._admission = admission

    def create(self, group: PodGroup, asking: Asking) -> PodGroup:
        """Admit and store a group that belongs to no job."""
        named_group = group.model_copy(update={"metadata": named(group.metadata)})

        def act() -> PodGroup:
            admitted = self._admission.pod_group(CREATE, named_group).object
            meta = admitted.metadata
            with self._database.transaction() as session:
                made = pod_groups.make(
                    session,
                    Key(meta.namespace, meta.name),
                    admitted.spec,
                    job=None,
                    labels=meta.labels or {},
                    annotations=meta.annotations or {},
                )
                asking.note(session, uids=[made.uid])
                return made.group

        return once(self._database, asking, act, _group_before)

    def get(self, key: Key) -> PodGroup:
        """The group of that name."""
        with self._database.transaction() as session:
            return pod_groups.get(session, key).group

    def page(
        self,
        *,
        namespace: str,
        queue: str,
        phases: Collection[str],
        labels: str,
        after: Place | None,
        limit: int,
    ) -> GroupPage:
        """A page of groups; labels leave some of the page out."""
        wanted = selector.parse(labels)
        with self._database.snapshot() as session:
            cursor = feed.start(session)
            rows = pod_groups.page(
                session,
                namespace=namespace,
                queue=queue,
                phases=phases,
                after=after,
                limit=limit + 1,
            )
        shown = [
            row.group for row in rows[:limit] if wanted.matches(row.group.metadata.labels or {})
        ]
        end = None
        if len(rows) > limit:
            end = Place(rows[limit - 1].created_at, rows[limit - 1].uid)
        return GroupPage(shown, end, cursor)

    def delete(self, key: Key, asking: Asking, *, uid: UUID | None) -> None:
        """Delete a group that belongs to no job."""

        def act() -> None:
            with self._database.transaction() as session:
                found = pod_groups.get(session, key)
                if uid is not None and uid != found.uid:
                    raise NotFoundError(f"pod group {key} with the uid {uid} does not exist")
                if found.job_uid is not None:
                    raise PreconditionError(
                        f"pod group {key} belongs to a job and goes with it: delete the job"
                    )
                asking.note(session)
                pod_groups.remove(session, found.uid)

        once(self._database, asking, act, done_before)

    def report(self, epoch: int, statuses: Mapping[UUID, PodGroupStatus]) -> Sequence[UUID]:
        """Store what the leading scheduler decided; return the groups that are gone.

        Raises:
            PreconditionError: another scheduler leads now.
        """
        for uid, status in statuses.items():
            violations = bounds.violations(status, f"status of {uid}")
            if violations:
                raise InvalidError.of(violations)
        with self._database.transaction() as session:
            leases.hold(session, SCHEDULER_LEASE, epoch=epoch)
            return pod_groups.report(session, epoch, statuses)


def _group_before(session: Session, answered: Answered) -> PodGroup:
    group = pod_groups.find(session, answered.uids[0])
    if group is not None:
        return group
    raise NotFoundError("the pod group that was made for this request does not exist any more")

"""Puts the controller's mirrors together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from hekla.domain import names
from hekla.domain.names import Key
from hekla.kube.client import KubeClient
from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.engine import Engine
from hekla.kube.mirror.standing import Installed, Mirror
from hekla.kube.resources import JOBS, PODGROUPS
from hekla.kube.rival import LOOK_EVERY, Rival
from hekla.lifecycle import repeating
from hekla.rpc.admission import Admission
from hekla.store import feed, jobs, pod_groups
from hekla.store.database import Database
from hekla.store.election import Election
from hekla.store.following import following
from hekla.store.hub import Hub, Item
from hekla.store.watching import metadata_of
from services.controller.mirror.groups import mirrored_groups, not_known_yet
from services.controller.mirror.jobs import mirrored_jobs

LEASE: Final = "controller-mirror"


class Mirrors:
    """The mirrors of jobs and pod groups for one term."""

    def __init__(
        self,
        database: Database,
        admission: Admission,
        kube: KubeClient,
        election: Election,
        *,
        status_rate: float,
    ) -> None:
        self.jobs = Engine(
            mirrored_jobs(database, admission, election.hold),
            kube,
            status_rate=status_rate,
            appeared=self._job_appeared,
        )
        self.groups = Engine(
            mirrored_groups(database, admission, election.hold, self._job),
            kube,
            status_rate=status_rate,
        )

    @property
    def engines(self) -> Sequence[Engine]:
        """All of them."""
        return [self.jobs, self.groups]

    def _job(self, key: Key) -> Custom | None:
        if not self.jobs.listed:
            raise not_known_yet()
        return self.jobs.known(key)

    def _job_appeared(self, custom: Custom) -> None:
        """A job's custom resource came or went: its group's follows."""
        uid = custom.mark or custom.uid
        name = names.pod_group_name(custom.key.name, uid)
        self.groups.mark([Key(custom.key.namespace, name)])

    def take(self, items: Sequence[Item]) -> None:
        """Hear of changed rows. The backlog, which has no custom resources, costs nothing."""
        marked: dict[str, list[Key]] = {jobs.KIND: [], pod_groups.KIND: []}
        for item in items:
            key = Key(*metadata_of(item))
            if item.kind == pod_groups.KIND:
                if self._has_part(item, key):
                    marked[item.kind].append(key)
            elif self.jobs.known(key) is not None:
                marked[item.kind].append(key)
        self.jobs.mark(marked[jobs.KIND])
        self.groups.mark(marked[pod_groups.KIND])

    def _has_part(self, item: Item, key: Key) -> bool:
        """Whether a group has a custom resource, or may get one."""
        if item.type == feed.DELETED or self.groups.known(key) is not None:
            return self.groups.known(key) is not None
        owners = item.object.metadata.owner_references or ()
        return not owners or any(
            self.jobs.known(Key(key.namespace, owner.name or "")) for owner in owners
        )

    def look_at_all(self) -> None:
        """Changes of rows may have been missed."""
        self.jobs.mark_all()
        self.groups.mark_all()


@contextmanager
def mirroring(
    database: Database,
    admission: Admission,
    kube: KubeClient,
    hub: Hub,
    *,
    holder: str,
    status_rate: float,
) -> Iterator[Mirror]:
    """Mirror where custom resources are installed and no Volcano is at work, in turn.

    ``holder`` is a name that no other process ever has.
    """
    election = Election(database, LEASE, holder=holder)
    rival = Rival(kube)
    term: list[Mirrors] = []

    def engines() -> Sequence[Engine]:
        term[:] = [Mirrors(database, admission, kube, election, status_rate=status_rate)]
        return term[0].engines

    def beside(_: Sequence[Engine]) -> AbstractContextManager[None]:
        kinds = [jobs.KIND, pod_groups.KIND]
        return following(hub, kinds, take=term[0].take, lost=term[0].look_at_all)

    mirror = Mirror(
        kube,
        [JOBS, PODGROUPS],
        ballot=election,
        engines=engines,
        beside=beside,
        hindrance=rival.problem,
    )

    def look_for_rival() -> bool:
        return mirror.installed is Installed.YES and rival.look()

    with mirror.running(), repeating("rival", look_for_rival, idle=LOOK_EVERY):
        yield mirror

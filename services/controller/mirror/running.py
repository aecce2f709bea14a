"""Puts the controller's mirrors together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple
from uuid import UUID

from hekla.domain import names
from hekla.domain.names import Key
from hekla.kube.client import KubeClient
from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.door import Door
from hekla.kube.mirror.engine import Engine
from hekla.kube.mirror.standing import Installed, Mirror
from hekla.kube.resources import COMMANDS, JOBS, PODGROUPS, QUEUES
from hekla.kube.rival import LOOK_EVERY, Rival
from hekla.lifecycle import repeating
from hekla.rpc.admission import Admission
from hekla.store import feed, jobs, pod_groups, queues
from hekla.store.database import Database
from hekla.store.election import Election
from hekla.store.following import following
from hekla.store.hub import Hub, Item
from hekla.store.watching import metadata_of, owners_of
from services.controller.mirror.commands import mirrored_commands
from services.controller.mirror.groups import mirrored_groups, not_known_yet
from services.controller.mirror.jobs import Hold, mirrored_jobs
from services.controller.mirror.namespaces import Namespaces
from services.controller.mirror.queues import COUNT_EVERY, Counting, mirrored_queues
from services.controller.mirror.telling import TELL_EVERY, Telling
from services.controller.queue_counts import QueueCounts

LEASE: Final = "controller-mirror"


class Mirrors:
    """The mirrors of the controller's kinds for one term."""

    def __init__(
        self,
        database: Database,
        admission: Admission,
        kube: KubeClient,
        hold: Hold,
        *,
        status_rate: float,
        counts: QueueCounts,
        closing: Callable[[], None],
    ) -> None:
        self.hold = hold
        self.jobs = Engine(
            mirrored_jobs(database, admission, hold, kube),
            kube,
            status_rate=status_rate,
            appeared=self._job_appeared,
        )
        self.groups = Engine(
            mirrored_groups(database, admission, hold, self._job),
            kube,
            status_rate=status_rate,
        )
        self.queues = Engine(
            mirrored_queues(database, admission, hold, counts),
            kube,
            status_rate=status_rate,
        )
        self.commands = Engine(mirrored_commands(database, kube, hold, closing), kube)
        self.counting = Counting(self.queues, counts)
        self.telling = Telling(database, kube, self.jobs.known)

    @property
    def engines(self) -> Sequence[Engine]:
        """All of them."""
        return [self.queues, self.jobs, self.groups, self.commands]

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
        self.counting.take(items)
        marked: dict[str, list[Key]] = {jobs.KIND: [], pod_groups.KIND: []}
        told: dict[UUID, Key] = {}
        for item in items:
            if item.kind == queues.KIND:
                continue
            key = Key(*metadata_of(item))
            if item.kind == pod_groups.KIND:
                if self._has_part(item, key):
                    marked[item.kind].append(key)
            elif self.jobs.known(key) is not None:
                marked[item.kind].append(key)
                told[UUID(item.uid)] = key
            if item.kind == jobs.KIND and item.type == feed.DELETED:
                told.pop(UUID(item.uid), None)
                self.telling.forget(UUID(item.uid))
        self.jobs.mark(marked[jobs.KIND])
        self.groups.mark(marked[pod_groups.KIND])
        self.telling.mark(told)

    def _has_part(self, item: Item, key: Key) -> bool:
        """Whether a group has a custom resource, or may get one."""
        if item.type == feed.DELETED or self.groups.known(key) is not None:
            return self.groups.known(key) is not None
        owners = list(owners_of(item))
        return not owners or any(
            self.jobs.known(Key(key.namespace, name)) for _, name in owners
        )

    def look_at_all(self) -> None:
        """Changes of rows may have been missed."""
        self.counting.look_at_all()
        self.jobs.mark_all()
        self.groups.mark_all()


class Mirroring(NamedTuple):
    """What the rest of the controller sees of the mirror."""

    mirror: Mirror
    queues: Door
    """By which calls write the custom resources of queues."""
    jobs: Door
    """By which calls write those of jobs that follow one."""

    def problem(self) -> str | None:
        """Why nothing is mirrored though it should be, or None; a readiness check."""
        installed = self.mirror.installed is Installed.YES
        return self.mirror.problem() if installed else None


@contextmanager
def mirroring(
    database: Database,
    admission: Admission,
    kube: KubeClient,
    hub: Hub,
    *,
    holder: str,
    status_rate: float,
    counts: QueueCounts,
    closing: Callable[[], None],
) -> Iterator[Mirroring]:
    """Mirror where custom resources are installed and no Volcano is at work, in turn.

    ``holder`` is a name that no other process ever has; ``closing`` is told when a queue is to
    close.
    """
    election = Election(database, LEASE, holder=holder)
    rival = Rival(kube)
    term: list[Mirrors] = []

    def engines() -> Sequence[Engine]:
        mirrors = Mirrors(
            database,
            admission,
            kube,
            election.term(),
            status_rate=status_rate,
            counts=counts,
            closing=closing,
        )
        term[:] = [mirrors]
        return mirrors.engines

    @contextmanager
    def beside(_: Sequence[Engine]) -> Iterator[None]:
        mirrors = term[0]
        kinds = [jobs.KIND, pod_groups.KIND, queues.KIND]
        with (
            following(hub, kinds, take=mirrors.take, lost=mirrors.look_at_all),
            repeating("queue-counts", mirrors.counting.count_once, idle=COUNT_EVERY),
            repeating("job-events", mirrors.telling.tell_once, idle=TELL_EVERY),
            Namespaces(database, mirrors.hold).running(kube),
        ):
            yield

    mirror = Mirror(
        kube,
        [JOBS, PODGROUPS, QUEUES, COMMANDS],
        ballot=election,
        engines=engines,
        beside=beside,
        hindrance=rival.problem,
    )

    def look_for_rival() -> bool:
        return mirror.installed is Installed.YES and rival.look()

    of_queues = mirrored_queues(database, admission, election.hold, counts)
    of_jobs = mirrored_jobs(database, admission, election.hold, kube)
    with mirror.running(), repeating("rival", look_for_rival, idle=LOOK_EVERY):
        yield Mirroring(mirror, Door(kube, of_queues, mirror), Door(kube, of_jobs, mirror))

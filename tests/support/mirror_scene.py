"""A controller's mirror between a local cluster and Postgres, with passes, and no scheduler."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

from sqlalchemy import text

from hekla.api.decode import encode
from hekla.api.job import Job
from hekla.api.pod_group import PodGroupStatus
from hekla.domain import names
from hekla.domain.errors import NotFoundError
from hekla.domain.names import Key
from hekla.domain.phases import PodGroupPhase
from hekla.kube import definitions
from hekla.kube.client import KubeClient
from hekla.kube.mirror.standing import Installed, Mirror
from hekla.kube.requests import Binding, Deletion
from hekla.kube.resources import JOBS, PODGROUPS, PODS, Resource
from hekla.lifecycle import repeating
from hekla.rpc.admission import Admission
from hekla.store import history, jobs, leases, pod_groups, queues
from hekla.store.database import Database
from hekla.store.dispatcher import Dispatcher
from hekla.store.hub import Hub
from hekla.store.jobs import StoredJob
from hekla.store.nudge import Nudge
from services.controller.__main__ import observing
from services.controller.acting import Actor
from services.controller.job_calls import JobCalls
from services.controller.mirror.owning import Owning
from services.controller.mirror.running import mirroring
from services.controller.observer import Observer
from services.controller.passes import Passes, PassLog
from services.controller.pod_group_calls import SCHEDULER_LEASE
from services.controller.queue_counts import QueueCounts
from tests.support.controller_scene import webhook_at
from tests.support.local_cluster import LocalCluster
from tests.support.objects import make_job, make_task
from tests.support.waiting import wait_until

LEASE: Final = timedelta(seconds=30)
NODE: Final = "node-0"

Object = dict[str, Any]


@dataclass(slots=True)
class MirrorScene:
    """What tests look at and do."""

    database: Database
    cluster: LocalCluster
    kube: KubeClient
    admission: Admission
    hub: Hub
    epoch: int
    mirrors: ExitStack = field(default_factory=ExitStack)
    mirror: Mirror | None = None
    mirroring: bool = False
    calls: JobCalls = field(init=False)
    """What JobService does, while somebody mirrors."""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    # ---- the mirror

    def start(self) -> Mirror:
        """Mirror from now on."""
        made = self.mirrors.enter_context(
            mirroring(
                self.database,
                self.admission,
                self.kube,
                self.hub,
                holder=str(uuid4()),
                status_rate=200,
                counts=QueueCounts(self.database),
                closing=lambda: None,
            )
        )
        self.mirror = made.mirror
        self.mirroring = True
        self.calls = JobCalls(self.database, self.admission, door=made.jobs)
        return made.mirror

    def stop(self) -> None:
        """Mirror no more; what happens now is missed."""
        self.mirrors.close()
        self.mirroring = False

    @property
    def installed(self) -> Installed:
        """What the last mirror found."""
        return self.mirror.installed if self.mirror is not None else Installed.UNKNOWN

    def problem(self) -> str | None:
        """Why custom resources must not be written."""
        return self.mirror.problem() if self.mirror is not None else "nobody mirrors yet"

    # ---- custom resources

    def name(self) -> str:
        """A name that nothing has."""
        return f"job-{next(self.numbers)}"

    def custom(self, name: str, resource: Resource = JOBS) -> Object | None:
        """The custom resource of that name in the namespace ``default``."""
        reply = self.kube.get(resource, "default", name)
        return None if reply.status == 404 else reply.found()

    def submit(self, job: Job, **metadata: Any) -> Object:
        """Create a job as kubectl does."""
        body = encode(job)
        body["metadata"] |= metadata
        body.pop("status", None)
        [reply] = self.kube.create_many(JOBS, [body])
        return reply.found()

    def delete(self, name: str, propagation: str = "Background") -> None:
        """Delete a job as kubectl does."""
        [reply] = self.kube.delete_many(
            [Deletion(JOBS, "default", name, propagation=propagation)]
        )
        assert reply.ok, reply

    def phase(self, name: str) -> str:
        """What ``kubectl get vcjob`` shows as STATUS."""
        return _phase(self.custom(name))

    def wait_for_phase(self, name: str, phase: str) -> Object:
        """The custom resource, once it has that phase."""

        def found() -> Object | None:
            custom = self.custom(name)
            return custom if _phase(custom) == phase else None

        return wait_until(found, what=f"{name} {phase}")

    def wait_for_custom(self, name: str, resource: Resource = JOBS) -> Object:
        """The custom resource of that name, once there is one."""
        return wait_until(lambda: self.custom(name, resource), what=f"{name} made")

    def wait_for_group_phase(self, name: str, phase: str) -> Object:
        """The custom resource of a group, once it has that phase."""

        def found() -> Object | None:
            custom = self.custom(name, PODGROUPS) or {}
            return custom if (custom.get("status") or {}).get("phase") == phase else None

        return wait_until(found, what=f"group {name} {phase}")

    def wait_until_nothing_is_left(self, name: str) -> None:
        """No custom resource, group or pod has the job's name any more."""
        wait_until(lambda: not self.left(name), what=f"nothing left of {name}")

    def left(self, name: str) -> list[str]:
        """What in the cluster begins with a job's name."""
        return [
            f"{resource.plural}/{item['metadata']['name']}"
            for resource in (JOBS, PODGROUPS, PODS)
            for item in self.kube.list(resource, "default")[0]
            if f"{item['metadata']['name']}-".startswith(f"{name}-")
        ]

    # ---- rows

    def stored(self, name: str) -> StoredJob | None:
        """The job of that name, as stored."""
        try:
            with self.database.transaction() as session:
                return jobs.get(session, Key("default", name))
        except NotFoundError:
            return None

    def wait_for_row(self, name: str) -> StoredJob:
        """The job of that name, once it is stored."""
        return wait_until(lambda: self.stored(name), what=f"row of {name}")

    def insert(self, job: Job) -> UUID:
        """Store a job as CreateJob does."""
        uid = uuid4()
        with self.database.transaction() as session:
            jobs.insert_many(session, [(uid, self.admission.job("CREATE", job).object)])
        return uid

    def forget(self, name: str) -> None:
        """Have the store be one that never had the job of that name, as a restored one may."""
        stored = self.wait_for_row(name)
        with self.database.transaction() as session:
            history.retire(session, stored)
            session.execute(
                text("delete from job_history where uid = :uid"), {"uid": stored.uid}
            )
            session.execute(
                text("delete from attempt_history where job_uid = :uid"), {"uid": stored.uid}
            )

    # ---- the scheduler's part

    def admit(self, uid: UUID | str, phase: PodGroupPhase = PodGroupPhase.INQUEUE) -> None:
        """The scheduler's word on a job's group, once it has one."""
        job = UUID(str(uid))

        def group() -> Any:
            with self.database.transaction() as session:
                return pod_groups.of_job(session, job)

        found = wait_until(group, what=f"group of {uid}")
        with self.database.transaction() as session:
            pod_groups.report(session, self.epoch, {found.uid: PodGroupStatus(phase=phase)})

    def pods(self, name: str) -> list[Mapping[str, Any]]:
        """The pods of a job."""
        return [
            pod
            for pod in self.kube.list(PODS, "default")[0]
            if pod["metadata"]["labels"].get("volcano.sh/job-name") == name
        ]

    def wait_for_pods(self, name: str, count: int = 1) -> list[Mapping[str, Any]]:
        """The pods of a job, once there are so many."""

        def found() -> list[Mapping[str, Any]] | None:
            pods = self.pods(name)
            return pods if len(pods) == count else None

        return wait_until(found, what=f"{count} pods of {name}")

    def bind(self, name: str, count: int = 1) -> None:
        """Let a job's pods run, once there are so many."""
        bindings = [
            Binding("default", meta["name"], meta["uid"], NODE)
            for meta in (pod["metadata"] for pod in self.wait_for_pods(name, count))
        ]
        assert all(reply.ok for reply in self.kube.bind_many(bindings))

    def run(self, name: str, uid: UUID | str) -> None:
        """Let a job of one pod run."""
        self.admit(uid)
        self.bind(name)
        self.admit(uid, PodGroupPhase.RUNNING)


def group_name(job: Any) -> str:
    """The name of a job's group."""
    return names.pod_group_name(job["metadata"]["name"], job["metadata"]["uid"])


def lasting(name: str, seconds: str = "1h", **more: Any) -> Job:
    """A job of one pod that pretends to run for so long."""
    task = make_task("t", 1)
    template = dict(task.template or {})
    template["metadata"] = {"annotations": {"hekla.io/simulate-duration": seconds}}
    return make_job(name, task.model_copy(update={"template": template}), **more)


@contextmanager
def mirror_scene(
    database: Database, home: Path, *, installed: bool = True
) -> Iterator[MirrorScene]:
    """A cluster, passes that are made as jobs come due, and nobody who mirrors yet."""
    with database.transaction() as session:
        queues.make_well_known(session)
        taken = leases.acquire(session, SCHEDULER_LEASE, holder="test", ttl=LEASE * 10)
        assert taken is not None
    cluster = LocalCluster(home, "--runtime=simulate", "--nodes=1").start()
    nudge = Nudge(database.url)
    database.on_change(nudge.poke)
    loaders = {
        jobs.KIND: jobs.documents,
        pod_groups.KIND: pod_groups.documents,
        queues.KIND: queues.load,
    }
    hub = Hub(database, loaders)
    heard = -1

    def read_feed() -> bool:
        nonlocal heard
        heard = nudge.wait(heard, nudge.patience)
        hub.read_once()
        return False

    with ExitStack() as running:
        running.callback(cluster.end)
        kube = running.enter_context(
            KubeClient.start(str(cluster.kubeconfig), isolated=False, service="mirror")
        )
        if installed:
            definitions.install(kube)
        where = running.enter_context(webhook_at(database))
        admission = Admission(where)
        running.callback(admission.close)
        running.enter_context(nudge.running())
        running.enter_context(repeating("feed", read_feed, idle=timedelta(milliseconds=10)))
        scene = MirrorScene(database, cluster, kube, admission, hub, taken.epoch)

        passes = Passes(
            database,
            Actor(kube, lease=LEASE, owning=Owning(kube, scene)),
            PassLog("test"),
            lease=LEASE,
        )
        dispatcher = Dispatcher(
            database,
            nudge,
            passes.run,
            kinds=[jobs.KIND],
            workers=2,
            max_requeues=15,
            lease=LEASE,
            tell=lambda *_: None,
        )
        running.enter_context(observing(Observer(database, kube)))
        running.enter_context(dispatcher.draining())
        running.enter_context(
            repeating("claims", dispatcher.claim_once, idle=timedelta(milliseconds=10))
        )
        running.callback(scene.stop)
        running.callback(nudge.hurry)
        yield scene


def _phase(custom: Object | None) -> str:
    return str((((custom or {}).get("status") or {}).get("state") or {}).get("phase") or "")

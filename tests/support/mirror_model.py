"""The mirror under any order of things: writes on both sides, crashes, news that is missed.

The API server and the store are real. Engines are driven step by step, so that any order can be
chosen: what a watch brings is taken in when a rule says so, or is lost with the process that
would have taken it. In the end, when nothing more goes wrong, both sides agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, cast
from uuid import UUID, uuid4

from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from hekla import failpoint
from hekla.api.decode import encode
from hekla.domain.errors import AlreadyExistsError, NotFoundError, PreconditionError
from hekla.domain.names import Key
from hekla.kube import definitions
from hekla.kube.client import KubeClient
from hekla.kube.mirror import merging
from hekla.kube.mirror.custom import Custom, read
from hekla.kube.mirror.deciding import Row, Source
from hekla.kube.mirror.engine import Engine
from hekla.kube.mirror.standing import Installed
from hekla.kube.requests import Deletion, Patch
from hekla.kube.resources import JOBS, QUEUES, Resource
from hekla.kube.subscription import Subscription
from hekla.rpc.admission import CREATE, Admission
from hekla.store import history, jobs, queues
from hekla.store.database import Database, Session
from services.controller.mirror.jobs import mirrored_jobs
from services.controller.mirror.owning import Owning
from services.controller.mirror.queues import mirrored_queues, queue_key
from services.controller.queue_counts import QueueCounts
from services.controller.queue_states import close, open_
from tests.support.controller_scene import webhook_at
from tests.support.local_cluster import LocalCluster
from tests.support.objects import make_job, make_queue, make_task
from tests.support.waiting import wait_until

POINTS: Final = ("mirror.row-taken", "mirror.custom-written", "mirror.shown")
NAMES: Final = 3
LATER: Final = 100.0
"""Seconds that pass between two rounds, so that no pause is waited for."""

_examples = itertools.count()
names = st.integers(0, NAMES - 1)


class World:
    """What all examples stand on."""

    def __init__(self, database: Database, kube: KubeClient, admission: Admission) -> None:
        self.database = database
        self.kube = kube
        self.admission = admission
        self.installed = Installed.YES
        self.owning = Owning(kube, self)
        self.counts = QueueCounts(database)

    def problem(self) -> str | None:
        """Custom resources may be written."""
        return None


def everybody(session: Session) -> None:
    """Whoever asks leads."""
    del session


class MirrorMachine(RuleBasedStateMachine):
    """A few queues and jobs."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.prefix = f"m{next(_examples)}"
        self.now = 0.0
        self.engines: list[Engine] = []
        self.watches: list[Subscription] = []
        self.kept: dict[tuple[Resource, str], str] = {}
        """Uids of custom resources that nobody asked to go."""

    # ---- the mirror

    @initialize()
    def start(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Another process: it knows nothing."""
        self.end()
        world = self.world
        kinds = (
            mirrored_queues(world.database, world.admission, everybody, world.counts),
            mirrored_jobs(world.database, world.admission, everybody, world.kube),
        )
        self.engines = [Engine(kind, world.kube, clock=lambda: self.now) for kind in kinds]
        self.watches = [world.kube.watch(kind.resource) for kind in kinds]
        for engine, watch in zip(self.engines, self.watches, strict=True):
            engine.take(watch.take(10))
            assert engine.listed

    def end(self) -> None:
        for watch in self.watches:
            watch.close()
        self.watches = []

    def teardown(self) -> None:
        try:
            if self.engines:
                self.settle()
        finally:
            self.end()

    @rule()
    def news_comes(self) -> None:
        for engine, watch in zip(self.engines, self.watches, strict=True):
            while batch := watch.take(0.02):
                engine.take(batch)

    @rule()
    def works(self) -> None:
        self.now += LATER
        for engine in self.engines:
            engine.work_once()

    @rule()
    def hears_of_rows(self) -> None:
        of_queues, of_jobs = self.engines
        of_queues.mark(queue_key(self.name(number)) for number in range(NAMES))
        of_jobs.mark(Key("default", self.name(number)) for number in range(NAMES))

    @rule(where=st.sampled_from(POINTS), engine=st.integers(0, 1))
    def dies(self, where: str, engine: int) -> None:
        self.now += LATER
        try:
            with failpoint.armed(f"{where}=raise@1"):
                self.engines[engine].work_once()
        except failpoint.FailpointError:
            self.begin()

    @rule()
    def is_away_for_a_while(self) -> None:
        self.begin()  # what the watches had was for another process

    # ---- custom resources

    @rule(number=names, weight=st.integers(1, 9))
    def make_queue(self, number: int, weight: int) -> None:
        queue = make_queue(self.name(number), state=None, weight=weight)
        self.post(QUEUES, encode(self.world.admission.queue(CREATE, queue).object))

    @rule(number=names, weight=st.integers(1, 9))
    def change_queue(self, number: int, weight: int) -> None:
        self.patch(QUEUES, number, {"spec": {"weight": weight}})

    @rule(number=names, label=st.sampled_from("abc"), kind=st.sampled_from((QUEUES, JOBS)))
    def label(self, number: int, label: str, kind: Resource) -> None:
        self.patch(kind, number, {"metadata": {"labels": {"l": label}}})

    @rule(number=names, replicas=st.integers(1, 3))
    def make_job(self, number: int, replicas: int) -> None:
        task = make_task("t", replicas).model_copy(update={"min_available": 1})
        job = make_job(self.name(number), task, min_available=1)
        self.post(JOBS, encode(self.world.admission.job(CREATE, job).object))

    @rule(number=names, kind=st.sampled_from((QUEUES, JOBS)))
    def delete(self, number: int, kind: Resource) -> None:
        name = self.name(number)
        self.world.kube.delete_many([Deletion(kind, "default", name)])
        self.kept.pop((kind, name), None)

    @rule(number=names, weight=st.integers(1, 9))
    def make_queue_again(self, number: int, weight: int) -> None:
        self.delete(number, QUEUES)
        self.make_queue(number, weight)

    @rule(number=names)
    def make_job_again(self, number: int) -> None:
        self.delete(number, JOBS)
        self.make_job(number, 2)

    # ---- rows

    @rule(number=names)
    def store_queue(self, number: int) -> None:
        """As before custom resources were installed."""
        try:
            with self.world.database.transaction() as session:
                queue = make_queue(self.name(number), state=None, parent="root")
                queues.make(session, queue, uid=uuid4())
        except AlreadyExistsError:
            return

    @rule(number=names, shut=st.booleans())
    def close_or_open(self, number: int, shut: bool) -> None:  # noqa: FBT001
        try:
            with self.world.database.transaction() as session:
                queue = queues.get(session, self.name(number))
                close(session, queue) if shut else open_(session, queue)
        except (NotFoundError, PreconditionError):
            return

    @rule(number=names)
    def store_job(self, number: int) -> None:
        """As CreateJob does."""
        job = make_job(self.name(number), make_task("t", 1))
        job = self.world.admission.job(CREATE, job).object
        try:
            with self.world.database.transaction() as session:
                jobs.insert_many(session, [(uuid4(), job)])
        except AlreadyExistsError:
            return

    @rule(number=names)
    def start_job(self, number: int) -> None:
        """A job of the first door gets its custom resource, though nobody notes it."""
        stored = self.job(number)
        if stored is not None and stored.deleting_at is None:
            self.world.owning.of(stored, timeout=5)

    @rule(number=names, phase=st.sampled_from(("Pending", "Running", "Restarting")))
    def job_gets_on(self, number: int, phase: str) -> None:
        stored = self.job(number)
        if stored is not None:
            with self.world.database.transaction() as session:
                session.connection().exec_driver_sql(
                    "update job set phase = %(phase)s::text, version = version + 1, status ="
                    " jsonb_build_object('state', jsonb_build_object('phase', %(phase)s::text))"
                    " where uid = %(uid)s",
                    {"phase": phase, "uid": stored.uid},
                )

    @rule(number=names)
    def delete_job(self, number: int) -> None:
        stored = self.job(number)
        if stored is not None:
            with self.world.database.transaction() as session:
                jobs.mark_deleting(session, stored.uid)
            self.kept.pop((JOBS, self.name(number)), None)

    @rule()
    def deleted_jobs_go(self) -> None:
        """As the controller's passes end, once pods are gone."""
        for number in range(NAMES):
            stored = self.job(number)
            if stored is not None and stored.deleting_at is not None:
                self.retire(stored.uid)

    # ---- in the end

    def settle(self) -> None:
        """Nothing more goes wrong: both sides come to agree, and to have nothing."""
        self.begin()
        self.until_agreed("both sides agree")
        for (kind, name), uid in self.kept.items():
            custom = self.custom(kind, name)
            assert custom is not None, f"{kind.plural} {name} is gone, and nobody asked for it"
            assert custom.uid == uid
        for number in range(NAMES):
            for kind in (QUEUES, JOBS):
                self.delete(number, kind)
            self.delete_job(number)
        self.until_agreed("nothing is left")
        for kind, number in itertools.product((QUEUES, JOBS), range(NAMES)):
            assert self.custom(kind, self.name(number)) is None
            assert self.row(kind, self.name(number)) is None

    def until_agreed(self, what: str) -> None:
        def agreed() -> bool:
            self.news_comes()
            self.hears_of_rows()
            self.works()
            self.deleted_jobs_go()
            return not self.differences()

        try:
            wait_until(agreed, timeout=10, what=what)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.differences()}") from None

    def differences(self) -> list[str]:
        """Where the two sides do not say the same."""
        return [
            f"{kind.plural} {self.name(number)}: {words}"
            for kind, number in itertools.product((QUEUES, JOBS), range(NAMES))
            if (words := self.difference(kind, self.name(number)))
        ]

    def difference(self, kind: Resource, name: str) -> str | None:
        custom, row = self.custom(kind, name), self.row(kind, name)
        if custom is not None and row is not None and row.custom_uid == custom.uid:
            return _unlike(custom, row)
        if row is None or (row.source is Source.ROW and not row.custom_uid and kind is JOBS):
            # Without a row there is nothing; the backlog of jobs is in rows alone. One that
            # somebody made waits for the name of such a job.
            refused = custom is not None and row is not None and not custom.mark
            return None if custom is None or refused else "nobody stands behind it"
        return "it has no custom resource" if custom is None else "it has another one"

    # ---- reading and writing

    def name(self, number: int) -> str:
        return f"{self.prefix}-{number}"

    def key(self, kind: Resource, name: str) -> Key:
        return Key("default" if kind.namespaced else "", name)

    def custom(self, kind: Resource, name: str) -> Custom | None:
        reply = self.world.kube.get(kind, "default", name)
        return None if reply.status == 404 else read(kind, reply.found())

    def row(self, kind: Resource, name: str) -> Row | None:
        engine = self.engines[0] if kind is QUEUES else self.engines[1]
        key = self.key(kind, name)
        return engine.kind.rows.read([key]).get(key)

    def job(self, number: int) -> jobs.StoredJob | None:
        try:
            with self.world.database.transaction() as session:
                return jobs.get(session, Key("default", self.name(number)))
        except NotFoundError:
            return None

    def retire(self, uid: UUID) -> None:
        with self.world.database.transaction() as session:
            history.retire(session, jobs.get_by_uid(session, uid, to_remove=True))

    def post(self, kind: Resource, body: dict[str, Any]) -> None:
        body.pop("status", None)
        [reply] = self.world.kube.create_many(kind, [body])
        if reply.status != 409:
            name = body["metadata"]["name"]
            self.kept[kind, name] = reply.found()["metadata"]["uid"]

    def patch(self, kind: Resource, number: int, body: dict[str, Any]) -> None:
        self.world.kube.patch_many([Patch(kind, "default", self.name(number), body)])


def _unlike(custom: Custom, row: Row) -> str | None:
    """Where a custom resource and its row do not say the same."""
    if custom.deleting or row.deleting:
        return "it is still going"
    if not merging.says(custom.spec, row.spec):
        return f"{custom.spec} and {row.spec}"
    if row.source is Source.CUSTOM and custom.labels != row.labels:
        return f"{custom.labels} and {row.labels}"
    if row.status and merging.patch(custom.status, row.status) is not None:
        return f"{custom.status} and {row.status}"
    return None


@contextmanager
def world(database: Database, cluster: LocalCluster) -> Iterator[World]:
    """A store and a cluster with our kinds."""
    with database.transaction() as session:
        queues.make_well_known(session)
    with ExitStack() as running:
        kube = running.enter_context(
            KubeClient.start(str(cluster.kubeconfig), isolated=False, service="controller")
        )
        definitions.install(kube)
        admission = Admission(running.enter_context(webhook_at(database)))
        running.callback(admission.close)
        yield World(database, kube, admission)


def check(found: World, *, examples: int, steps: int, derandomize: bool) -> None:
    """Run so many examples."""
    run_state_machine_as_test(
        cast("type[MirrorMachine]", lambda: MirrorMachine(found)),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=derandomize,
            phases=[Phase.generate],  # an example that fails takes its time
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )

"""The flow service in this process, beside a controller and a webhook on real sockets.

There are no pods: a test says which phase a job is in, as the controller would write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from hekla.api.job import Job, JobCondition, JobState
from hekla.api.job_flow import JobFlow
from hekla.client import Client
from hekla.domain import timestamps
from hekla.domain.errors import NotFoundError
from hekla.domain.names import Key
from hekla.domain.phases import FINISHED, JobPhase
from hekla.lifecycle import repeating
from hekla.rpc.admission import Admission
from hekla.rpc.server import serving
from hekla.store import history, job_flows, job_templates, jobs
from hekla.store.database import Database, now
from hekla.store.dispatcher import Dispatcher
from hekla.store.hub import Hub
from hekla.store.nudge import Nudge
from services.flow.__main__ import SERVICES, registering
from services.flow.acting import Actor
from services.flow.clients import Controller
from services.flow.flow_calls import FlowCalls
from services.flow.mirror.running import Mirroring
from services.flow.observer import Observer
from services.flow.passes import KINDS, Passes, tell_owner
from services.flow.servicers.job_flows import JobFlowServicer
from services.flow.servicers.job_templates import JobTemplateServicer
from services.flow.template_calls import TemplateCalls
from tests.support.controller_scene import Scene
from tests.support.objects import make_flow, make_template
from tests.support.waiting import wait_until

LEASE: Final = timedelta(seconds=10)


@dataclass(slots=True)
class FlowScene:
    """A flow service that runs."""

    database: Database
    client: Client
    controller: Controller
    observer: Observer
    namespace: str = "default"

    def template(self, name: str, **spec: object) -> None:
        """Store a template."""
        made = make_template(name, **spec)
        metadata = made.metadata.model_copy(update={"namespace": self.namespace})
        self.client.job_templates.create(made.model_copy(update={"metadata": metadata}))

    def flow(self, name: str = "f", /, *, retain: str | None = None, **steps: str) -> JobFlow:
        """Store a flow; its templates too, unless there is one of that name."""
        known = {
            one.metadata.name for one in self.client.job_templates.list(self.namespace).items
        }
        for step in (name.replace("_", "-") for name in steps):
            if step not in known:
                self.template(step)
        return self.bare_flow(name, retain=retain, **steps)

    def bare_flow(
        self, name: str = "f", /, *, retain: str | None = None, **steps: str
    ) -> JobFlow:
        """Store a flow, and no templates."""
        made = make_flow(name, retain=retain, **steps)
        metadata = made.metadata.model_copy(update={"namespace": self.namespace})
        wanted = made.model_copy(update={"metadata": metadata})
        return self.client.job_flows.create(wanted).object

    def get(self, name: str = "f") -> JobFlow:
        """The flow as it is now."""
        return self.client.job_flows.get(self.namespace, name)

    def jobs(self) -> Sequence[str]:
        """Names of the jobs there are, in alphabetical order."""
        found = self.client.jobs.list(self.namespace).items
        return sorted(job.metadata.name for job in found)

    def job(self, name: str) -> Job:
        """A job as it is now."""
        return self.client.jobs.get(self.namespace, name)

    def until_jobs(self, *names: str) -> None:
        """Wait until these are the jobs there are."""
        wait_until(lambda: self.jobs() == sorted(names), what=f"the jobs to be {names}")

    def until(self, holds: Callable[[JobFlow], object], name: str = "f") -> JobFlow:
        """Wait until something holds of a flow."""
        found = wait_until(
            lambda: [flow for flow in [self.get(name)] if holds(flow)], what="the flow"
        )
        return found[0]

    def until_phase(self, phase: str, name: str = "f") -> JobFlow:
        """Wait until a flow is in a phase."""
        return self.until(lambda flow: flow.status.state.phase == phase, name)

    def move(self, name: str, phase: JobPhase) -> None:
        """Have the controller say that a job is in a phase now."""
        with self.database.transaction() as session:
            stored = jobs.get(session, Key(self.namespace, name))
            at = now(session)
            text = timestamps.to_text(at)
            status = stored.job.status.model_copy(
                update={
                    "state": JobState(phase=phase, last_transition_time=text),
                    "conditions": [
                        *(stored.job.status.conditions or ()),
                        JobCondition(status=phase, last_transition_time=text),
                    ],
                }
            )
            jobs.record(
                session,
                stored,
                status=status,
                counters=stored.counters,
                started_at=at,
                finished_at=at if phase in FINISHED else None,
            )

    def complete(self, *names: str) -> None:
        """Have jobs complete."""
        for name in names:
            self.move(name, JobPhase.COMPLETED)

    def remove(self, name: str) -> None:
        """Have a job be gone, as the controller does once its pods are."""
        with self.database.transaction() as session:
            stored = jobs.get(session, Key(self.namespace, name))
            jobs.mark_deleting(session, stored.uid)
            history.retire(session, stored)

    def sweep(self) -> bool:
        """Remove all jobs that are to go; give whether there are any left."""
        for job in self.client.jobs.list(self.namespace).items:
            if job.metadata.deletion_timestamp is not None:
                self.remove(job.metadata.name)
        return bool(self.jobs())

    def is_gone(self, name: str = "f") -> bool:
        """Whether a flow is gone; jobs that are to go are removed on the way."""
        self.sweep()
        try:
            self.get(name)
        except NotFoundError:
            return True
        return False


@contextmanager
def flow_scene(
    database: Database, served: Scene, *, kubeconfig: Path | None = None
) -> Iterator[FlowScene]:
    """Run the flow service over the same database, by connections of its own.

    With a ``kubeconfig`` it mirrors custom resources.
    """
    theirs = database
    database = Database(theirs.url)
    hub = Hub(
        database, {job_flows.KIND: job_flows.load, job_templates.KIND: job_templates.load}
    )
    nudge = Nudge(database.url)
    database.on_change(nudge.poke)
    with ExitStack() as running:
        running.callback(database.close)
        controller = Controller(served.address)
        admission = Admission(served.webhook)
        running.callback(admission.close)
        running.enter_context(nudge.running())
        observer = Observer(database, controller)
        mirroring = Mirroring()
        if kubeconfig is not None:
            mirroring = Mirroring.start(
                running, str(kubeconfig), database=database, admission=admission, hub=hub
            )
        passes = Passes(
            database,
            Actor(controller, lease=LEASE),
            replica="test",
            lease=LEASE,
            mirrored=mirroring.mirrored,
        )
        dispatcher = Dispatcher(
            database,
            nudge,
            passes.run,
            kinds=KINDS,
            workers=2,
            max_requeues=3,
            lease=LEASE,
            tell=partial(tell_owner, failures=3),
        )
        running.enter_context(observer.following())
        running.callback(controller.close)
        running.callback(observer.stop)
        running.enter_context(dispatcher.draining())
        pause = timedelta(milliseconds=20)
        running.enter_context(repeating("flow-feed", hub.read_once, idle=pause))
        running.enter_context(
            repeating("flow-claims", dispatcher.claim_once, idle=timedelta(0))
        )
        register = registering(
            JobFlowServicer(  # type: ignore[abstract]
                FlowCalls(database, admission, mirroring.flows), hub
            ),
            JobTemplateServicer(TemplateCalls(database, admission, mirroring.templates), hub),
        )
        server = running.enter_context(
            serving(register, listen="127.0.0.1:0", threads=8, services=SERVICES)
        )
        running.callback(hub.stop)
        client = running.enter_context(
            Client(addresses={"controller": served.address, "flow": server.address})
        )
        wait_until(lambda: observer.problem() is None, what="the observer to hear")
        yield FlowScene(theirs, client, controller, observer)

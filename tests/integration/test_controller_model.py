"""The job machine under any order of things: commands, kubelets, crashes, late and lost news.

The store is real; pods are kept in memory, where every step is chosen. After each step the
invariants hold; in the end, when nothing more goes wrong, the job comes to an end, and after
its deletion nothing is left of it.
"""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import text

from hekla import failpoint
from hekla.api.job import Job
from hekla.api.pod_group import PodGroupStatus
from hekla.domain.errors import NotFoundError
from hekla.domain.phases import FINISHED, JobAction, JobPhase, PodGroupPhase
from hekla.domain.trigger import Command
from hekla.kube.client import KubeClient
from hekla.store import attempts, commands, events, history, jobs, pod_groups, work
from hekla.store.database import Database
from services.controller.acting import Actor
from services.controller.observer import Observer
from services.controller.passes import Passes, PassLog
from services.controller.rounds import Rounds
from tests.support.factories import make_job, make_task, policies
from tests.support.pod_api import PodApi
from tests.support.postgres import Server
from tests.unit.test_job_transitions import ALLOWED

_numbers = itertools.count()
LEASE = timedelta(seconds=30)
EVENTS = ["PodFailed", "PodEvicted", "TaskCompleted", "*"]
ACTIONS = ["RestartJob", "AbortJob", "TerminateJob", "CompleteJob", "RestartTask", "RestartPod"]

policy_lists = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.sampled_from(ACTIONS)), max_size=2
)


class JobMachine(RuleBasedStateMachine):
    """One job."""

    def __init__(self, postgres: Server) -> None:
        super().__init__()
        url = postgres.make_database(f"model_{next(_numbers)}", template="template")
        self.database = Database(url, pool_size=2)
        self.api = PodApi()
        client = cast("KubeClient", self.api)
        self.observer = Observer(self.database, client)
        actor = Actor(client, lease=LEASE)
        told = PassLog("model")
        self.passes = Passes(self.database, actor, told, lease=LEASE)
        self.rounds = Rounds(self.database, actor, told, lease=LEASE)
        self.uid = uuid4()
        self.succeeded: set[tuple[str, int, int]] = set()
        self.epoch = 1

    def teardown(self) -> None:
        try:
            self.settle()
        finally:
            self.database.close()

    @initialize(
        sizes=st.lists(st.integers(1, 3), min_size=1, max_size=2),
        minimum=st.integers(0, 3),
        retries=st.integers(1, 3),
        job_policies=policy_lists,
        task_policies=policy_lists,
    )
    def submit(
        self,
        sizes: list[int],
        minimum: int,
        retries: int,
        job_policies: Any,
        task_policies: Any,
    ) -> None:
        tasks = [
            make_task(
                name, size, minAvailable=min(minimum, size), policies=policies(*task_policies)
            )
            for name, size in zip("ab", sizes, strict=False)
        ]
        job: Job = make_job(*tasks, maxRetry=retries, policies=policies(*job_policies))
        with self.database.transaction() as session:
            jobs.insert_many(session, [(self.uid, job)])

    # The controller.

    @rule(way=st.sampled_from(["together", "alone"]))
    def look(self, way: str = "alone") -> None:
        """One look, now: as one of several jobs, or by itself."""
        with self.database.transaction() as session:
            work.wake(session, jobs.KIND, str(self.uid), urgent=True)
            session.execute(
                text("update work set due_at = clock_timestamp(), claimed_until = null")
            )
            claims = work.claim(session, [jobs.KIND], limit=1, lease=LEASE)
        for claim in self.rounds.look(claims) if way == "together" else claims:
            self.passes.run(claim)

    @rule(
        way=st.sampled_from(["together", "alone"]),
        where=st.sampled_from(
            ["controller.recorded", "controller.acted", "controller.commit-unknown"]
        ),
    )
    def crash(self, way: str, where: str) -> None:
        """A look that dies at a named place."""
        with failpoint.armed(f"{where}=raise"):
            try:
                self.look(way)
            except failpoint.FailpointError:
                return

    # What it is asked.

    @rule(
        action=st.sampled_from(
            [
                JobAction.ABORT_JOB,
                JobAction.RESUME_JOB,
                JobAction.RESTART_JOB,
                JobAction.TERMINATE_JOB,
                JobAction.COMPLETE_JOB,
            ]
        )
    )
    def command(self, action: JobAction) -> None:
        with self.database.transaction() as session:
            commands.ask(session, self.uid, Command(0, action))

    # The scheduler.

    @rule(phase=st.sampled_from([PodGroupPhase.INQUEUE, PodGroupPhase.RUNNING]))
    def admit(self, phase: PodGroupPhase) -> None:
        with self.database.transaction() as session:
            group = pod_groups.of_job(session, self.uid)
            if group is not None:
                status = PodGroupStatus(phase=phase)
                pod_groups.report(session, self.epoch, {group.uid: status})

    # Kubelets, other users, the network.

    @precondition(lambda self: self.api.pods)
    @rule(data=st.data(), code=st.sampled_from([0, 0, 0, 1]))
    def run_a_pod(self, data: st.DataObject, code: int) -> None:
        """A pod starts, or one that runs ends."""
        name = data.draw(st.sampled_from(sorted(self.api.pods)))
        phase = self.api.pods[name]["status"]["phase"]
        if phase == "Pending":
            self.api.start(name)
        elif phase == "Running":
            self.end(name, code)

    def end(self, name: str, code: int) -> None:
        if code == 0:
            self.succeeded.add(self.api.place_of(name))
        self.api.end(name, code)

    @precondition(lambda self: self.api.pods)
    @rule(data=st.data(), how=st.sampled_from(["evict", "reject", "vanish"]))
    def lose_a_pod(self, data: st.DataObject, how: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.api.pods)))
        phase = self.api.pods[name]["status"]["phase"]
        if how == "evict":
            self.api.mark_deleted(name)
        elif how == "reject" and phase == "Pending":
            self.api.reject(name)
        elif how == "vanish" and phase in ("Pending", "Running"):
            self.api.vanish(name)

    @rule(late=st.booleans())
    def slow_network(self, *, late: bool) -> None:
        """From now on creates time out and happen later; or all of those happen."""
        if late:
            self.api.delay_creates = True
        else:
            self.api.delay_creates = False
            self.api.land_late_creates()

    # The observer.

    @rule(most=st.integers(1, 5))
    def observe(self, most: int) -> None:
        """Some news arrive, and perhaps arrive twice."""
        batch = self.api.take_events(most)
        if batch:
            self.observer.take(batch)
            self.observer.take(batch)

    @rule()
    def relist(self) -> None:
        self.observer.take(self.api.relist())

    @rule()
    def release_finalizers(self) -> None:
        self.observer.release_once()

    # What always holds.

    @invariant()
    def success_is_final_within_its_run(self) -> None:
        for place in self.succeeded:
            bodies = [
                pod
                for pod in self.api.created
                if (
                    pod["metadata"]["annotations"]["volcano.sh/task-spec"],
                    int(pod["metadata"]["annotations"]["volcano.sh/task-index"]),
                    int(pod["metadata"]["annotations"]["hekla.io/run"]),
                )
                == place
                and pod["status"]["phase"] == "Succeeded"
            ]
            assert len(bodies) <= 1, f"{place} succeeded twice"

    @invariant()
    def phases_move_along_the_table(self) -> None:
        with self.database.transaction() as session:
            said = events.of_job(session, self.uid)
        for event in said:
            if event.message.startswith("was "):
                before = JobPhase(event.message.removeprefix("was "))
                assert event.reason in ALLOWED[before]

    # In the end.

    def settle(self) -> None:
        """Nothing more goes wrong: the job ends, and goes when it is deleted."""
        if not self._exists():
            return
        self.api.delay_creates = False
        self.api.land_late_creates()
        self._until(self._at_rest, "the job comes to an end")
        with self.database.transaction() as session:
            jobs.mark_deleting(session, self.uid)
        self._until(lambda: not self._exists(), "the deleted job goes")
        self._calm()
        assert self.api.pods == {}
        with self.database.transaction() as session:
            assert pod_groups.of_job(session, self.uid) is None
            assert history.job(session, uid=self.uid).metadata.name == "j"

    def _exists(self) -> bool:
        try:
            self._job()
        except NotFoundError:
            return False
        return True

    def _job(self) -> Job:
        with self.database.transaction() as session:
            return jobs.get_by_uid(session, self.uid).job

    def _at_rest(self) -> bool:
        job = self._job()
        with self.database.transaction() as session:
            counted = attempts.counts(session, self.uid)
        live = any(
            states.get(state)
            for states in counted.by_task.values()
            for state in ("Planned", "Pending", "Running", "Terminating", "Unknown")
        )
        return not live and job.status.state.phase in {*FINISHED, JobPhase.ABORTED}

    def _until(self, done: Any, what: str) -> None:
        for _ in range(60):
            if done():
                return
            self._calm()
        raise AssertionError(f"never: {what}; {self._job().status}")

    def _calm(self) -> None:
        """Everybody does what they should."""
        self._forgive()
        self.look()
        self.admit(PodGroupPhase.RUNNING)
        for name in sorted(self.api.pods):
            if self.api.pods[name]["status"]["phase"] == "Pending":
                self.api.start(name)
        for name in self.api.running():
            leaving = "deletionTimestamp" in self.api.pods[name]["metadata"]
            self.end(name, 143 if leaving else 0)
        self.observer.take(self.api.take_events())
        self.observer.release_once()
        self.observer.take(self.api.relist())
        self.observer.release_once()

    def _forgive(self) -> None:
        """Pauses are over."""
        with self.database.transaction() as session:
            session.execute(
                text(
                    "update attempt set finished_at = now() - interval '1 min'"
                    " where outcome = 'Rejected'"
                )
            )


def test_a_job_comes_to_its_end_whatever_happens(postgres: Server) -> None:
    run_state_machine_as_test(
        cast("type[JobMachine]", lambda: JobMachine(postgres)),
        settings=settings(
            max_examples=25,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )

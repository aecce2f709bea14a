"""Jobs as tests of passes submit and change them, and what is said of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from hekla.domain.phases import JobPhase
from hekla.store import events, jobs
from tests.support.controller_scene import Driver
from tests.support.factories import make_job, make_task, policies
from tests.support.pod_api import Pod
from tests.support.store import value

EVICTED_ENDS_IT = policies(("PodEvicted", "TerminateJob"))


def submit(driver: Driver, *tasks: Any, name: str = "j", **spec: Any) -> UUID:
    """A job that was admitted; its uid."""
    uid = uuid4()
    with driver.database.transaction() as session:
        jobs.insert_many(session, [(uid, make_job(*tasks, name=name, **spec))])
    return uid


def scale(driver: Driver, uid: UUID, **replicas: int) -> None:
    """Store the job's new spec, as UpdateJob does."""
    stored = driver.job(uid)
    tasks = [make_task(name, count) for name, count in replicas.items()]
    spec = make_job(*tasks).spec.model_copy(update={"policies": stored.job.spec.policies})
    with driver.database.transaction() as session:
        jobs.update_spec(session, stored, stored.job.model_copy(update={"spec": spec}))


def delete(driver: Driver, uid: UUID) -> None:
    with driver.database.transaction() as session:
        jobs.mark_deleting(session, uid)


def said(driver: Driver, uid: UUID) -> list[str]:
    """Reasons of the job's events."""
    with driver.database.transaction() as session:
        return [event.reason for event in events.of_job(session, uid)]


def state(driver: Driver, uid: UUID) -> tuple[JobPhase, str]:
    shown = driver.job(uid).job.status.state
    return JobPhase(shown.phase or ""), shown.reason or ""


def instant(driver: Driver, what: str = "clock_timestamp()") -> datetime:
    """A time of Postgres', by default now; one that a job's work has comes from ``work``."""
    with driver.database.transaction() as session:
        found: datetime = value(session, f"select {what}")
        return found


def a_foreign_pod(name: str) -> Pod:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {}}

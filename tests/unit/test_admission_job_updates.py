"""What may change in a job, and what may not. C-numbers name published cases."""

from __future__ import annotations

from typing import Any

import pytest

from hekla.api.job import (
    Job,
    VolumeSpec,
)
from hekla.api.meta import ObjectMeta
from services.webhook.rules.admission import Operation, admit
from services.webhook.rules.world import Limits
from tests.support.admission import accepted, tasks_of
from tests.support.objects import (
    make_job,
    make_policy,
    make_task,
    pod_template,
)
from tests.support.worlds import FixedWorld


def updated(job: Job, old: Job) -> dict[str, str]:
    answer = admit(Operation.UPDATE, job, accepted(old), FixedWorld())
    return {violation.path: violation.message for violation in answer.violations}


def changed(job: Job, **spec: Any) -> Job:
    return job.model_copy(update={"spec": job.spec.model_copy(update=spec)})


def changed_task(job: Job, **values: Any) -> Job:
    first, *rest = tasks_of(job)
    return changed(job, tasks=[first.model_copy(update=values), *rest])


OLD = make_job("j", make_task("t", 2), make_task("u", 2), policies=[make_policy(event="*")])


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(OLD, id="nothing"),
        pytest.param(changed(OLD, min_available=1), id="minAvailable"),
        pytest.param(changed(OLD, min_available=0), id="minAvailable to zero"),
        pytest.param(changed(OLD, priority_class_name="high"), id="priorityClassName"),
        pytest.param(changed_task(OLD, replicas=3), id="more replicas"),
        pytest.param(changed_task(OLD, replicas=1), id="fewer replicas"),
        pytest.param(changed_task(OLD, min_available=1), id="task minAvailable"),
        pytest.param(changed(OLD, volumes=[], plugins={}), id="absent to empty"),
        pytest.param(changed(OLD, scheduler_name="volcano"), id="a default spelled out"),
        pytest.param(
            OLD.model_copy(update={"metadata": ObjectMeta(name="j", labels={"a": "b"})}),
            id="labels",
        ),
    ],
)
def test_an_update_may_change(job: Job) -> None:
    """C05, with #1706: the manifest that made the job may be applied again."""
    assert updated(job, OLD) == {}


OTHER = pod_template(terminationGracePeriodSeconds=5)


@pytest.mark.parametrize(
    ("job", "path"),
    [
        (changed(OLD, queue="other"), "spec.queue"),
        (changed(OLD, max_retry=5), "spec.maxRetry"),
        (changed(OLD, policies=[]), "spec.policies"),
        (changed(OLD, plugins={"env": []}), "spec.plugins"),
        (changed(OLD, scheduler_name="other"), "spec.schedulerName"),
        (changed(OLD, min_success=1), "spec.minSuccess"),
        (changed(OLD, ttl_seconds_after_finished=1), "spec.ttlSecondsAfterFinished"),
        (changed(OLD, volumes=[VolumeSpec(mount_path="/a")]), "spec.volumes"),
        (changed_task(OLD, template=OTHER), "spec.tasks[0].template"),
        (changed_task(OLD, name="x"), "spec.tasks[0].name"),
        (changed_task(OLD, max_retry=9), "spec.tasks[0].maxRetry"),
        (changed(OLD, tasks=tasks_of(OLD)[:1]), "spec.tasks"),
        (changed(OLD, tasks=[*tasks_of(OLD), make_task("v")]), "spec.tasks"),
        (changed(OLD, tasks=tasks_of(OLD)[::-1]), "spec.tasks[0].name"),
        (changed(OLD, min_available=5), "spec.minAvailable"),
        (changed_task(OLD, min_available=3), "spec.tasks[0].minAvailable"),
        (changed_task(OLD, replicas=-1), "spec.tasks[0].replicas"),
    ],
)
def test_an_update_must_not_change(job: Job, path: str) -> None:
    """C05."""
    assert path in updated(job, OLD)


def test_quantities_of_one_value_are_no_change() -> None:
    def asking(cpu: Any) -> Job:
        resources = {"requests": {"cpu": cpu}}
        container = {"name": "c", "image": "i", "resources": resources}
        return make_job("j", make_task(template=pod_template(containers=[container])))

    assert updated(asking("1000m"), asking(1)) == {}
    assert "spec.tasks[0].template" in updated(asking("2"), asking(1))


def test_claims_that_were_made_are_no_change_and_are_kept() -> None:
    """C05."""
    volume = VolumeSpec(mount_path="/a", volume_claim={"storageClassName": "x"})
    old = make_job(volumes=[volume.model_copy(update={"volume_claim_name": "made"})])

    answer = admit(Operation.UPDATE, make_job(volumes=[volume]), old, FixedWorld())

    assert "spec.volumes" not in [violation.path for violation in answer.violations]
    [kept] = answer.object.spec.volumes or []
    assert kept.volume_claim_name == "made"


def test_a_pod_name_is_measured_when_a_job_grows() -> None:
    """C07."""
    old = make_job("j" * (63 - len("-t-9")), make_task("t", 10))

    assert "spec.tasks[0].name" in updated(changed_task(old, replicas=11), old)


def test_a_job_keeps_its_scheduler_when_the_default_becomes_another() -> None:
    other = Limits(scheduler_name="other")

    answer = admit(Operation.UPDATE, make_job(), accepted(make_job()), FixedWorld(), other)

    assert answer.allowed
    assert answer.object.spec.scheduler_name == "volcano"


def test_an_update_needs_what_it_replaces() -> None:
    assert not admit(Operation.UPDATE, make_job(), None, FixedWorld()).allowed


def test_a_job_may_always_be_deleted() -> None:
    assert admit(Operation.DELETE, make_job("J"), None, FixedWorld()).allowed

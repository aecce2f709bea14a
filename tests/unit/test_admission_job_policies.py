"""Which policies of a job are accepted. C-numbers name published cases."""

from __future__ import annotations

from typing import Any

import pytest

from hekla.api.job import (
    Job,
    LifecyclePolicy,
)
from hekla.domain.phases import JobEvent
from services.webhook.rules.policies import ACTIONS
from tests.support.admission import accepted, created, refused
from tests.support.objects import (
    make_job,
    make_policy,
    make_task,
)

LEVELS = pytest.mark.parametrize("level", ["job", "task"])


def with_policies(level: str, *policies: LifecyclePolicy) -> Job:
    if level == "job":
        return make_job(policies=list(policies))
    return make_job("j", make_task(policies=list(policies)))


@LEVELS
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("event", list(JobEvent))
def test_every_public_event_and_action_is_accepted(event: str, action: str, level: str) -> None:
    """C02."""
    accepted(with_policies(level, make_policy(action, event=event)))


def test_there_are_eight_public_actions() -> None:
    assert len(ACTIONS) == 8


@LEVELS
@pytest.mark.parametrize("event", ["OutOfSync", "CommandIssued", "PodRunning", "Podfailed"])
def test_internal_and_unknown_events_are_refused(event: str, level: str) -> None:
    assert refused(with_policies(level, make_policy(event=event)))


@LEVELS
@pytest.mark.parametrize("trigger", [{"event": "PodFailed"}, {"exit_code": 1}])
@pytest.mark.parametrize(
    "action",
    [
        "SyncJob",
        "EnqueueJob",
        "Enqueue",
        "SyncQueue",
        "OpenQueue",
        "CloseQueue",
        "",
        None,
        "Go",
    ],
)
def test_internal_actions_are_refused_whatever_triggers_them(
    action: str | None, trigger: dict[str, Any], level: str
) -> None:
    """C01."""
    [path] = refused(with_policies(level, make_policy(action, **trigger)))

    assert path.endswith("policies[0].action")


@LEVELS
@pytest.mark.parametrize(
    ("policies", "path"),
    [
        ([make_policy(event="PodFailed", exit_code=3)], "[0]"),
        ([make_policy()], "[0]"),
        ([make_policy(events=[])], "[0]"),
        ([make_policy(exit_code=0)], "[0].exitCode"),
        ([make_policy(event="*"), make_policy("AbortJob", event="PodFailed")], "[0]"),
        ([make_policy(events=["PodFailed", "*"])], "[0]"),
        (
            [make_policy(event="PodFailed"), make_policy(events=["PodEvicted", "PodFailed"])],
            "[1].events[1]",
        ),
        ([make_policy(exit_code=3), make_policy("AbortJob", exit_code=3)], "[1].exitCode"),
        ([make_policy(event="PodFailed", timeout="-1s")], "[0].timeout"),
    ],
)
def test_policies_that_contradict_each_other_are_refused(
    policies: list[LifecyclePolicy], path: str, level: str
) -> None:
    """C03."""
    place = "spec.policies" if level == "job" else "spec.tasks[0].policies"

    assert list(refused(with_policies(level, *policies))) == [f"{place}{path}"]


@LEVELS
@pytest.mark.parametrize(
    "policies",
    [
        [make_policy(events=["PodFailed", "PodFailed"])],
        [make_policy(event="PodFailed", events=["PodFailed", "PodEvicted"])],
        [make_policy(event="*"), make_policy(exit_code=3)],
        [make_policy(exit_code=-1)],
        [make_policy(event="PodFailed", timeout="10m")],
    ],
)
def test_policies_that_agree_are_accepted(policies: list[LifecyclePolicy], level: str) -> None:
    accepted(with_policies(level, *policies))


def test_a_task_may_react_to_what_its_job_reacts_to() -> None:
    policies = [make_policy(event="PodFailed")]

    accepted(make_job("j", make_task(policies=policies), policies=policies))


def test_a_pending_policy_without_a_timeout_is_warned_of() -> None:
    """C24."""
    policies = [make_policy(event="PodPending"), make_policy(event="PodFailed")]

    [warning] = created(make_job(policies=policies)).warnings

    assert warning == "spec.policies[0]: PodPending without a timeout does nothing"

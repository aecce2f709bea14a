"""What is done about a flow: every entry of its table. C-numbers name published cases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings, strategies as st

from hekla.api.job_flow import Flow, FlowDependsOn, JobFlow, JobFlowSpec, Probe
from hekla.api.meta import ObjectMeta
from hekla.domain.phases import FlowPhase, JobPhase
from services.flow.core.observed import Observed, Plan, Wait
from services.flow.core.plan import plan
from services.flow.core.tally import Tally
from services.flow.core.transitions import TRANSITIONS, FlowAction, settled
from tests.support.flows import DIAMOND, NOW, UID, observe
from tests.support.objects import make_flow

DONE = str(JobPhase.COMPLETED)
RUNS = str(JobPhase.RUNNING)
BAD = str(JobPhase.FAILED)


def decide(observed: Observed) -> Plan:
    return plan(observed, NOW)


@pytest.mark.parametrize(
    ("phases", "started"),
    [
        ({}, ["a"]),
        ({"a": "Pending"}, []),
        ({"a": RUNS}, []),
        ({"a": DONE}, ["b", "c"]),
        ({"a": DONE, "b": DONE}, ["c"]),
        ({"a": DONE, "b": DONE, "c": RUNS}, []),
        ({"a": DONE, "b": DONE, "c": DONE}, ["d"]),
        ({"a": "Restarting"}, []),
        ({"a": "Completing"}, []),
    ],
)
def test_a_step_starts_when_all_its_targets_are_completed(
    phases: dict[str, str], started: list[str]
) -> None:
    assert list(decide(observe(DIAMOND, phases)).create) == started


@pytest.mark.parametrize(
    ("before", "phases", "after"),
    [
        ("Pending", {}, "Pending"),
        ("Pending", {"a": "Pending"}, "Pending"),
        ("Pending", {"a": RUNS}, "Running"),
        ("Pending", {"a": DONE}, "Running"),
        ("Pending", {"a": BAD}, "Failed"),
        ("Pending", {"a": "Terminated"}, "Failed"),
        pytest.param(
            "Pending",
            {"a": RUNS, "b": "Terminated"},
            "Failed",
            id="one runs, one is terminated",
        ),
        pytest.param(
            "Pending", dict.fromkeys("abcd", DONE), "Succeed", id="all completed at first sight"
        ),
        ("Running", {"a": DONE, "b": RUNS}, "Running"),
        ("Running", {"a": DONE, "b": DONE, "c": DONE}, "Running"),
        ("Running", dict.fromkeys("abcd", DONE), "Succeed"),
        ("Running", {"a": DONE, "b": BAD, "c": RUNS}, "Failed"),
        ("Running", {"a": DONE, "b": "Terminating"}, "Running"),
        ("Running", {"a": DONE, "b": "Restarting"}, "Running"),
        ("Running", {"a": DONE, "b": "Aborted"}, "Running"),
        ("Failed", dict.fromkeys("abcd", DONE), "Failed"),
        ("Succeed", dict.fromkeys("abcd", DONE), "Succeed"),
    ],
)
def test_a_flow_is_what_its_jobs_are(before: str, phases: dict[str, str], after: str) -> None:
    assert decide(observe(DIAMOND, phases, phase=FlowPhase(before))).phase == after


def test_each_job_is_in_the_list_of_its_phase() -> None:
    steps = {
        "pending": "Pending",
        "running": "Running",
        "completing": "Completing",
        "terminating": "Terminating",
        "completed": "Completed",
        "failed": "Failed",
        "terminated": "Terminated",
        "restarting": "Restarting",
        "aborting": "Aborting",
        "aborted": "Aborted",
    }
    status = decide(observe(make_flow("f", **dict.fromkeys(steps, "")), steps)).status

    assert status.pending_jobs == ["f-pending"]
    assert status.running_jobs == ["f-running", "f-completing", "f-terminating"]
    assert status.completed_jobs == ["f-completed"]
    assert status.failed_jobs == ["f-failed"]
    assert status.terminated_jobs == ["f-terminated"]
    assert status.un_know_jobs == ["f-restarting", "f-aborting", "f-aborted"]
    assert list(status.conditions or ()) == [f"f-{step}" for step in steps]
    assert [one.name for one in status.job_status_list or ()] == list(status.conditions or ())


def test_a_failed_step_fails_the_flow_and_nothing_new_starts() -> None:
    """C96: b failed while c runs; d is never made, and what becomes of c is still shown."""
    decided = decide(
        observe(DIAMOND, {"a": DONE, "b": BAD, "c": DONE}, phase=FlowPhase.RUNNING)
    )

    assert (decided.phase, dict(decided.create), list(decided.remove)) == ("Failed", {}, [])
    assert decided.finished_at == NOW
    assert decided.status.failed_jobs == ["f-b"]
    assert decided.status.completed_jobs == ["f-a", "f-c"]
    state = decided.status.state
    assert (state.reason, state.message) == ("StepFailed", "step b: its job is Failed")


def test_a_completed_step_is_not_run_again_when_its_job_is_gone() -> None:
    """C101: its job was deleted after its time to live, or by hand."""
    running = observe(
        DIAMOND, {"a": DONE, "b": RUNS, "c": RUNS}, phase=FlowPhase.RUNNING, gone=("a",)
    )
    ended = observe(
        DIAMOND, dict.fromkeys("abcd", DONE), phase=FlowPhase.RUNNING, gone=tuple("abcd")
    )

    assert dict(decide(running).create) == {}
    assert decide(running).status.completed_jobs == ["f-a"]
    assert (decide(ended).phase, dict(decide(ended).create)) == ("Succeed", {})


def test_a_job_that_was_deleted_before_its_end_fails_the_flow() -> None:
    """C101, input 3: who deletes a step's job wants it to stop, not to start anew."""
    decided = decide(observe(DIAMOND, {"a": RUNS}, phase=FlowPhase.RUNNING, gone=("a",)))

    assert (decided.phase, dict(decided.create)) == ("Failed", {})
    assert decided.status.failed_jobs == ["f-a"]
    assert decided.status.state.reason == "StepDeleted"


def test_a_step_without_its_template_waits_and_the_others_do_not() -> None:
    """C104."""
    decided = decide(observe(DIAMOND, {"a": DONE}, phase=FlowPhase.RUNNING, missing=("b",)))

    assert list(decided.create) == ["c"]
    state = decided.status.state
    assert state.reason == "JobTemplateNotFound"
    assert state.message == "step b: JobTemplate default/b does not exist"


def test_a_refusal_is_shown_until_the_job_is_made() -> None:
    why = {"a": Wait("JobRefused", 'spec.queue: does not exist: "q"')}

    for observed in (
        observe(DIAMOND, refused=why),
        observe(DIAMOND, refused=why, planned=("a",)),
    ):
        state = decide(observed).status.state
        assert (state.reason, state.message) == (
            "JobRefused",
            'step a: spec.queue: does not exist: "q"',
        )
    assert decide(observe(DIAMOND, {"a": RUNS}, refused=why)).status.state.reason is None


def test_a_probe_is_not_passed_over_in_silence() -> None:
    depends = FlowDependsOn(targets=["a"], probe=Probe())
    flow = JobFlow(
        metadata=ObjectMeta(name="f", namespace="default"),
        spec=JobFlowSpec(flows=[Flow(name="a"), Flow(name="b", depends_on=depends)]),
    )

    decided = decide(observe(flow, {"a": DONE}, phase=FlowPhase.RUNNING))

    assert dict(decided.create) == {}
    assert decided.status.state.reason == "NotYetSupported"
    assert "step b has a probe" in (decided.status.state.message or "")


def test_an_aborted_job_is_waited_for() -> None:
    decided = decide(observe(DIAMOND, {"a": "Aborted"}, phase=FlowPhase.RUNNING))

    assert decided.phase == "Running"
    assert decided.status.state.reason == "StepAborted"
    assert decided.status.un_know_jobs == ["f-a"]


@pytest.mark.parametrize("retain", [None, "retain"])
def test_jobs_stay_after_success_unless_they_are_to_go(retain: str | None) -> None:
    flow = make_flow(retain=retain, a="", b="a")

    decided = decide(observe(flow, {"a": DONE, "b": DONE}, phase=FlowPhase.RUNNING))

    assert (decided.phase, list(decided.remove)) == ("Succeed", [])


def test_jobs_go_after_success_if_they_are_to_and_stay_in_the_status() -> None:
    flow = make_flow(retain="delete", a="", b="a")
    jobs = {"a": DONE, "b": DONE}

    first = decide(observe(flow, jobs, phase=FlowPhase.RUNNING))
    later = decide(observe(flow, jobs, phase=FlowPhase.SUCCEED, gone=("a",)))
    last = decide(observe(flow, jobs, phase=FlowPhase.SUCCEED, gone=("a", "b")))

    assert (list(first.remove), list(later.remove), list(last.remove)) == (
        ["a", "b"],
        ["b"],
        [],
    )
    assert last.status.completed_jobs == ["f-a", "f-b"]
    assert not last.retire


@pytest.mark.parametrize("phase", list(FlowPhase))
def test_a_flow_that_is_deleted_goes_once_its_jobs_have_gone(phase: FlowPhase) -> None:
    jobs = {"a": DONE, "b": RUNS}

    first = decide(observe(DIAMOND, jobs, phase=phase, deleting=True))
    last = decide(observe(DIAMOND, jobs, phase=phase, gone=("a", "b"), deleting=True))

    assert (first.phase, list(first.remove), first.retire) == ("Terminating", ["a", "b"], False)
    assert dict(first.create) == {}
    assert last.retire


def test_a_job_that_may_have_been_made_keeps_a_flow_from_going() -> None:
    decided = decide(observe(DIAMOND, planned=("a",), deleting=True))

    assert not decided.retire
    assert not decided.making, "it is found out whether it was made"


def test_a_job_says_whose_it_is() -> None:
    job = decide(observe(DIAMOND)).create["a"]

    meta = job.metadata
    assert (meta.name, meta.namespace) == ("f-a", "default")
    made_by = {
        "volcano.sh/createdByJobFlow": "default.f",
        "volcano.sh/createdByJobTemplate": "default.a",
    }
    assert (meta.labels, meta.annotations) == (made_by, made_by)
    [owner] = meta.owner_references or []
    assert (owner.kind, owner.name, owner.uid) == ("JobFlow", "f", str(UID))
    assert owner.controller


def test_an_equal_look_gives_an_equal_status() -> None:
    observed = observe(DIAMOND, {"a": DONE, "b": RUNS}, phase=FlowPhase.PENDING)
    first = decide(observed).status

    again = Observed(
        flow=observed.flow.model_copy(update={"status": first}),
        steps=observed.steps,
        templates=observed.templates,
    )

    assert plan(again, NOW + timedelta(hours=1)).status == first


def test_the_table_is_whole() -> None:
    for phase in FlowPhase:
        assert set(TRANSITIONS[phase]) == set(FlowAction)


TALLIES = st.builds(
    Tally,
    steps=st.integers(6, 9),
    **{
        name: st.integers(0, 1)
        for name in ("pending", "running", "failed", "completed", "terminated", "unknown")
    },
)


@given(st.sampled_from(FlowPhase), st.sampled_from(FlowAction), TALLIES)
def test_a_flow_settles_and_an_end_is_final(
    phase: FlowPhase, action: FlowAction, counts: Tally
) -> None:
    after = settled(phase, action, counts)

    assert settled(after, action, counts) is after
    ended = phase in (FlowPhase.SUCCEED, FlowPhase.FAILED)
    if ended and action is FlowAction.SYNC:
        assert after is phase


STEPS = "abcdef"


@st.composite
def graphs(draw: st.DrawFn) -> JobFlow:
    """Any graph without a cycle."""
    steps = {}
    for number, step in enumerate(STEPS):
        before = STEPS[:number]
        chosen = draw(st.lists(st.sampled_from(before), unique=True)) if before else []
        steps[step] = " ".join(chosen)
    return make_flow("f", retain=draw(st.sampled_from([None, "retain", "delete"])), **steps)


@settings(max_examples=25)
@given(graphs(), st.randoms(use_true_random=False))
def test_every_graph_runs_each_step_once_and_after_its_targets(
    flow: JobFlow, random: object
) -> None:
    phases: dict[str, str] = {}
    order: list[str] = []
    phase = FlowPhase.PENDING
    for _ in range(4 * len(STEPS)):
        decided = decide(observe(flow, phases, phase=phase))
        phase = decided.phase
        assert not set(decided.create) & set(phases), "no step is made twice"
        phases |= dict.fromkeys(decided.create, RUNS)
        running = [step for step, at in phases.items() if at == RUNS]
        if running:
            done = random.choice(running)  # type: ignore[attr-defined] # hypothesis' own
            order.append(done)
            phases[done] = DONE

    assert phase is FlowPhase.SUCCEED
    assert sorted(order) == list(STEPS)
    for step in flow.spec.flows or ():
        for target in (step.depends_on.targets or ()) if step.depends_on else ():
            assert order.index(target) < order.index(step.name)

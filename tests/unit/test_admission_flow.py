"""Flows and templates are judged as the webhook promises. C-numbers name published cases."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from hekla.api.job_flow import (
    Flow,
    FlowDependsOn,
    JobFlow,
    JobFlowSpec,
    JobSpecPatch,
    Patch,
    Probe,
    TaskSpecPatch,
)
from hekla.api.job_template import JobTemplate
from hekla.api.meta import ObjectMeta
from hekla.domain.phases import QueueState
from services.webhook.rules.admission import Admission, Operation, admit
from tests.support.objects import make_flow, make_queue, make_task, make_template, models
from tests.support.worlds import FixedWorld

WORLD = FixedWorld()
CLOSED = FixedWorld(make_queue("q", state=QueueState.CLOSED))


def created(flow: JobFlow) -> Admission[JobFlow]:
    return admit(Operation.CREATE, flow, None, WORLD)


def refused(flow: JobFlow) -> dict[str, str]:
    answer = created(flow)
    assert not answer.allowed
    return {violation.path: violation.message for violation in answer.violations}


def named(name: str, *steps: str) -> JobFlow:
    flows = [Flow(name=step) for step in steps]
    return JobFlow(
        metadata=ObjectMeta(name=name, namespace="default"), spec=JobFlowSpec(flows=flows)
    )


def patched(*tasks: TaskSpecPatch) -> JobFlow:
    patch = Patch(job_spec=JobSpecPatch(tasks=list(tasks)))
    return JobFlow(
        metadata=ObjectMeta(name="f"), spec=JobFlowSpec(flows=[Flow(name="a", patch=patch)])
    )


def template(given: JobTemplate, world: FixedWorld = WORLD) -> Admission[JobTemplate]:
    return admit(Operation.CREATE, given, None, world)


@pytest.mark.parametrize(
    "flow",
    [
        pytest.param(make_flow(a="", b="a", c="a b", d="b", e="c d"), id="a graph"),
        pytest.param(make_flow(b="a", a=""), id="a target that comes later in the list"),
        pytest.param(make_flow(a="", b="a a"), id="a target named twice"),
        pytest.param(make_flow(retain="delete", a=""), id="one step"),
        pytest.param(named("f" * 31, "s" * 31), id="a job name of 63 characters"),
    ],
)
def test_a_flow_that_has_an_order_is_admitted(flow: JobFlow) -> None:
    assert created(flow) == Admission(flow, ())


def test_a_flow_without_a_namespace_is_in_the_default_one() -> None:
    flow = JobFlow(metadata=ObjectMeta(name="f"), spec=JobFlowSpec(flows=[Flow(name="a")]))

    assert created(flow).object.metadata.namespace == "default"


@pytest.mark.parametrize(
    ("flow", "path", "message"),
    [
        (named("f"), "spec.flows", "is required: a flow has at least one step"),
        (named("f", "a", "b", "a"), "spec.flows[2].name", 'the name of spec.flows[0] too: "a"'),
        (named("f", ""), "spec.flows[0].name", "must not be empty"),
        (named("f", "A"), "spec.flows[0].name", "lower case letters"),
        (
            make_flow(a="", b="a x"),
            "spec.flows[1].dependsOn.targets[1]",
            'must be the name of another step, is "x"',
        ),
        (make_flow(a="a"), "spec.flows[0].dependsOn.targets[0]", "must not be the step itself"),
        (
            make_flow(a="", b="d", c="b", d="c", e="a"),
            "spec.flows[1].dependsOn",
            'must not go in a circle, as it does among "b", "c", "d"',
        ),
        pytest.param(
            named("f" * 40, "s" * 30),
            "spec.flows[0].name",
            "which has 71 characters; there may be 63",
            id="C103 a derived job name too long",
        ),
        (
            patched(TaskSpecPatch(replicas=1)),
            "spec.flows[0].patch.jobSpec.tasks[0].name",
            "is required",
        ),
        (
            patched(TaskSpecPatch(name="t"), TaskSpecPatch(name="t")),
            "spec.flows[0].patch.jobSpec.tasks[1].name",
            'is there twice: "t"',
        ),
    ],
)
def test_a_flow_that_cannot_run_is_refused(flow: JobFlow, path: str, message: str) -> None:
    assert message in refused(flow)[path]


def test_a_name_that_will_be_generated_counts_as_long_as_it_will_be() -> None:
    flow = named("", "s" * 31)
    fits, not_ = (
        flow.model_copy(update={"metadata": ObjectMeta(generate_name="f" * length)})
        for length in (26, 27)
    )

    assert created(fits).allowed
    assert "64 characters" in refused(not_)["spec.flows[0].name"]


def test_a_step_with_a_probe_is_warned_of() -> None:
    steps = [Flow(name="a"), Flow(name="b", depends_on=FlowDependsOn(probe=Probe()))]
    flow = JobFlow(metadata=ObjectMeta(name="f"), spec=JobFlowSpec(flows=steps))

    assert created(flow).warnings == (
        "spec.flows[1].dependsOn.probe is not supported yet: the step will wait",
    )


def test_the_steps_of_a_flow_stay_while_its_policy_may_change() -> None:
    """C100: a change of the graph is refused, not ignored."""
    old = make_flow(retain="retain", a="", b="a")

    def changed(new: JobFlow) -> list[str]:
        answer = admit(Operation.UPDATE, new, old, WORLD)
        return [violation.path for violation in answer.violations]

    assert changed(make_flow(retain="delete", a="", b="a")) == []
    assert changed(make_flow(retain="retain", a="", b="a", c="a")) == ["spec.flows"]
    assert changed(make_flow(retain="retain", a="", b="")) == ["spec.flows"]


def test_a_template_is_stored_as_it_was_written() -> None:
    """What is filled in would no longer follow what a patch changes."""
    written = make_template("a", make_task("t", 3))

    assert template(written) == Admission(written, ())


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"min_available": 5}, "spec.minAvailable"),
        ({"plugins": {"nosuch": []}}, "spec.plugins.nosuch"),
        ({"queue": "nosuch"}, "spec.queue"),
        ({"max_retry": -1}, "spec.maxRetry"),
    ],
)
def test_a_template_that_makes_no_job_is_refused(spec: dict[str, Any], path: str) -> None:
    assert [found.path for found in template(make_template(**spec)).violations] == [path]


def test_a_template_without_tasks_is_refused() -> None:
    empty = JobTemplate(metadata=ObjectMeta(name="a"))

    assert [found.path for found in template(empty).violations] == ["spec.tasks"]


def test_a_queue_that_is_closed_now_says_nothing_of_later() -> None:
    answer = template(make_template(queue="q"), CLOSED)

    assert answer.allowed
    assert answer.warnings == ('spec.queue: must be an Open queue, is "q", which is Closed',)


def test_what_is_deleted_is_not_judged() -> None:
    assert admit(Operation.DELETE, named("f"), None, WORLD).allowed
    assert admit(Operation.DELETE, JobTemplate(), None, WORLD).allowed


@given(models(JobFlow))
@settings(max_examples=30)
def test_every_flow_is_judged(flow: JobFlow) -> None:
    for violation in created(flow).violations:
        assert violation.message


@given(models(JobTemplate))
@settings(max_examples=30)
def test_every_template_is_judged(given_: JobTemplate) -> None:
    for violation in template(given_).violations:
        assert violation.message

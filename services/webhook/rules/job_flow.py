"""Rules for flows: their steps have names, an order, and room for the names of their jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from hekla.api.decode import encode
from hekla.api.fields import shown
from hekla.api.job_flow import Flow, JobFlow
from hekla.domain import paths, syntax
from hekla.domain.errors import Violation
from hekla.domain.names import flow_job_name
from services.webhook.rules import dependencies
from services.webhook.rules.registry import UPDATES, WRITES, Case, Operation, Rule

GENERATED: Final = 5
"""Characters that complete a generateName."""


def _steps(case: Case[JobFlow]) -> Sequence[Flow]:
    return case.object.spec.flows or ()


def _placed(case: Case[JobFlow]) -> Iterator[tuple[str, Flow]]:
    for index, step in enumerate(_steps(case)):
        yield paths.at("spec.flows", index), step


def _steps_there(case: Case[JobFlow]) -> Iterator[Violation]:
    if not _steps(case):
        yield Violation("spec.flows", "is required: a flow has at least one step")


def _step_names(case: Case[JobFlow]) -> Iterator[Violation]:
    seen: dict[str, str] = {}
    for place, step in _placed(case):
        first = seen.setdefault(step.name, place)
        if first != place:
            message = f"is the name of {first} too: {shown(step.name)}"
            yield Violation(f"{place}.name", message)


def _template_names(case: Case[JobFlow]) -> Iterator[Violation]:
    for place, step in _placed(case):
        wrong = syntax.subdomain_error(step.name) if step.name else None
        if wrong is not None:
            yield Violation(f"{place}.name", f"{wrong}, is {shown(step.name)}")


def _job_names(case: Case[JobFlow]) -> Iterator[Violation]:
    """The job that is made for a step."""
    meta = case.object.metadata
    flow = meta.name or f"{meta.generate_name or ''}{'x' * GENERATED}"
    for place, step in _placed(case):
        name = flow_job_name(flow, step.name)
        if step.name and len(name) > syntax.LABEL_LENGTH:
            message = (
                f"makes the job name {shown(name)}, which has {len(name)} characters;"
                f" there may be {syntax.LABEL_LENGTH}"
            )
            yield Violation(f"{place}.name", message)


def _patched_tasks(case: Case[JobFlow]) -> Iterator[Violation]:
    """A patch says which task it changes, and once."""
    for where, step in _placed(case):
        place = f"{where}.patch.jobSpec.tasks"
        spec = step.patch.job_spec if step.patch is not None else None
        seen: set[str] = set()
        for index, task in enumerate((spec.tasks if spec is not None else None) or ()):
            if not task.name:
                yield Violation(paths.at(place, index, "name"), "is required")
            elif task.name in seen:
                message = f"is there twice: {shown(task.name)}"
                yield Violation(paths.at(place, index, "name"), message)
            seen.add(task.name)


def _targets(step: Flow) -> Sequence[str]:
    return (step.depends_on.targets or ()) if step.depends_on is not None else ()


def _targets_there(case: Case[JobFlow]) -> Iterator[Violation]:
    known = {step.name for step in _steps(case)}
    for where, step in _placed(case):
        for position, name in enumerate(_targets(step)):
            place = paths.at(where, "dependsOn", "targets", position)
            if name == step.name:
                yield Violation(place, "must not be the step itself")
            elif name not in known:
                message = f"must be the name of another step, is {shown(name)}"
                yield Violation(place, message)


def _in_order(case: Case[JobFlow]) -> Iterator[Violation]:
    steps = _steps(case)
    known = {step.name: index for index, step in enumerate(steps)}
    before: dict[int, set[int]] = {}
    for index, step in enumerate(steps):
        found = {known[name] for name in _targets(step) if name in known and name != step.name}
        if found:
            before[index] = found
    waiting = dependencies.stuck(len(steps), before)
    if waiting:
        circle = ", ".join(shown(steps[index].name) for index in waiting[:10])
        message = f"must not go in a circle, as it does among {circle}"
        yield Violation(paths.at("spec.flows", waiting[0], "dependsOn"), message)


def _fixed(case: Case[JobFlow]) -> Iterator[Violation]:
    assert case.old is not None
    if encode(case.object.spec).get("flows") != encode(case.old.spec).get("flows"):
        yield Violation(
            "spec.flows",
            "must not change: delete the flow and create it anew to run another graph",
        )


def _probes(case: Case[JobFlow]) -> Iterator[Violation]:
    for where, step in _placed(case):
        if step.depends_on is not None and step.depends_on.probe is not None:
            place = paths.at(where, "dependsOn", "probe")
            message = f"{place} is not supported yet: the step will wait"
            yield Violation("", message)


def _rule(
    name: str,
    check: Callable[[Case[JobFlow]], Iterator[Violation]],
    path: str,
    says: str,
    example: str,
    *,
    operations: frozenset[Operation] = WRITES,
    beyond: bool = True,
    warns: bool = False,
) -> Rule:
    return Rule(
        name=f"job-flow.{name}",
        kinds=("JobFlow",),
        operations=operations,
        check=check,
        path=path,
        says=says,
        example=example,
        beyond=beyond,
        warns=warns,
    )


RULES: Final = (
    _rule("steps", _steps_there, "spec.flows", "A flow has at least one step.", "spec: {}"),
    _rule(
        "step-names",
        _step_names,
        "spec.flows[].name",
        "No two steps have one name.",
        "flows: [{name: a}, {name: a}]",
    ),
    _rule(
        "template-names",
        _template_names,
        "spec.flows[].name",
        "A step's name is one that a JobTemplate may have.",
        "{name: A}",
    ),
    _rule(
        "job-names",
        _job_names,
        "spec.flows[].name",
        "`<flow>-<step>`, the name of the step's job, has at most 63 characters.",
        "a step of 30 characters in a flow of 40",
    ),
    _rule(
        "patched-tasks",
        _patched_tasks,
        "spec.flows[].patch.jobSpec.tasks[].name",
        "A patch names each task that it changes, once.",
        "tasks: [{replicas: 2}]",
    ),
    _rule(
        "targets",
        _targets_there,
        "spec.flows[].dependsOn.targets[]",
        "A step comes after other steps of the flow.",
        "{name: a, dependsOn: {targets: [a]}}",
        beyond=False,
    ),
    _rule(
        "order",
        _in_order,
        "spec.flows[].dependsOn",
        "There is an order in which the steps can run.",
        "a after b, b after a",
        beyond=False,
    ),
    _rule(
        "fixed",
        _fixed,
        "spec.flows",
        "The steps of a flow stay as they were.",
        "an update adds a step",
        operations=UPDATES,
    ),
    _rule(
        "probes",
        _probes,
        "spec.flows[].dependsOn.probe",
        "Probes are not built yet.",
        "probe: {taskStatusList: []}",
        beyond=False,
        warns=True,
    ),
)

"""Rules for flows: their steps have names, an order, and room for the names of their jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hekla.api.decode import encode
from hekla.api.fields import shown
from hekla.api.job_flow import Flow, JobFlow
from hekla.domain import paths, syntax
from hekla.domain.errors import Violation
from hekla.domain.names import flow_job_name
from services.webhook.rules import dependencies

GENERATED: Final = 5
"""Characters that complete a generateName."""


def violations(flow: JobFlow) -> Iterator[Violation]:
    """All that is wrong with a flow."""
    steps = flow.spec.flows or []
    if not steps:
        yield Violation("spec.flows", "is required: a flow has at least one step")
    seen: dict[str, int] = {}
    for index, step in enumerate(steps):
        place = paths.at("spec.flows", index)
        first = seen.setdefault(step.name, index)
        if first != index:
            message = f"is the name of spec.flows[{first}] too: {shown(step.name)}"
            yield Violation(f"{place}.name", message)
        elif step.name:
            yield from _names(flow, step, place)
        yield from _patch(step, f"{place}.patch.jobSpec.tasks")
    yield from _order(steps)


def update_violations(flow: JobFlow, old: JobFlow) -> Iterator[Violation]:
    """All that is wrong with ``flow`` in place of ``old``: its steps must stay."""
    if encode(flow.spec).get("flows") != encode(old.spec).get("flows"):
        yield Violation("spec.flows", "must not change")


def warnings(flow: JobFlow) -> Iterator[str]:
    """What a flow asks for in vain."""
    for index, step in enumerate(flow.spec.flows or ()):
        if step.depends_on is not None and step.depends_on.probe is not None:
            place = paths.at("spec.flows", index, "dependsOn", "probe")
            yield f"{place} is not supported yet: the step will wait"


def _names(flow: JobFlow, step: Flow, place: str) -> Iterator[Violation]:
    """The step's template, and the job that is made for it."""
    wrong = syntax.subdomain_error(step.name)
    if wrong is not None:
        yield Violation(f"{place}.name", f"{wrong}, is {shown(step.name)}")
        return
    meta = flow.metadata
    name = flow_job_name(meta.name or f"{meta.generate_name or ''}{'x' * GENERATED}", step.name)
    if len(name) > syntax.LABEL_LENGTH:
        message = (
            f"makes the job name {shown(name)}, which has {len(name)} characters;"
            f" there may be {syntax.LABEL_LENGTH}"
        )
        yield Violation(f"{place}.name", message)


def _patch(step: Flow, place: str) -> Iterator[Violation]:
    """A patch says which task it changes, and once."""
    spec = step.patch.job_spec if step.patch is not None else None
    seen: set[str] = set()
    for index, task in enumerate((spec.tasks if spec is not None else None) or ()):
        if not task.name:
            yield Violation(paths.at(place, index, "name"), "is required")
        elif task.name in seen:
            message = f"is there twice: {shown(task.name)}"
            yield Violation(paths.at(place, index, "name"), message)
        seen.add(task.name)


def _order(steps: Sequence[Flow]) -> Iterator[Violation]:
    known = {step.name: index for index, step in enumerate(steps)}
    before: dict[int, set[int]] = {}
    for index, step in enumerate(steps):
        targets = (step.depends_on.targets or []) if step.depends_on is not None else []
        for position, name in enumerate(targets):
            place = paths.at("spec.flows", index, "dependsOn", "targets", position)
            if name == step.name:
                yield Violation(place, "must not be the step itself")
            elif name not in known:
                message = f"must be the name of another step, is {shown(name)}"
                yield Violation(place, message)
            else:
                before.setdefault(index, set()).add(known[name])
    waiting = dependencies.stuck(len(steps), before)
    if waiting:
        circle = ", ".join(shown(steps[index].name) for index in waiting[:10])
        message = f"must not go in a circle, as it does among {circle}"
        yield Violation(paths.at("spec.flows", waiting[0], "dependsOn"), message)

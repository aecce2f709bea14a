"""Rules for pods of our scheduler that somebody else makes, and what their groups of nodes add.

A pod has no model: it is Kubernetes' own kind, and all of it is passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hekla.api.fields import shown
from hekla.domain import paths
from hekla.domain.errors import Violation
from hekla.domain.names import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE
from services.webhook.rules.registry import CREATION, Case, Rule
from services.webhook.rules.resource_groups import ResourceGroup

BUDGETS: Final = (JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE)
GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
"""Annotation that asks for the scheduling gate of this name, with the value ``true``."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as Kubernetes has it."""

    raw: Mapping[str, Any]

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations that are texts."""
        metadata = self.raw.get("metadata")
        given = metadata.get("annotations") if isinstance(metadata, Mapping) else None
        if not isinstance(given, Mapping):
            return {}
        return {key: value for key, value in given.items() if isinstance(value, str)}

    @property
    def namespace(self) -> str:
        """Where it is to be."""
        metadata = self.raw.get("metadata")
        given = metadata.get("namespace") if isinstance(metadata, Mapping) else None
        return given if isinstance(given, str) else ""

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its spec."""
        spec = self.raw.get("spec")
        return spec if isinstance(spec, Mapping) else {}

    @property
    def scheduler_name(self) -> str:
        """Who is to schedule it."""
        name = self.spec.get("schedulerName")
        return name if isinstance(name, str) else ""


def created_pod(pod: Pod, groups: Sequence[ResourceGroup] = ()) -> Pod:
    """``pod`` as it is stored when it is new: with its gate, and what its group gives it."""
    pod = _gated(pod)
    for group in groups:
        if group.matches(pod.namespace, pod.annotations):
            return Pod({**pod.raw, "spec": group.applied(pod.spec)})
    return pod


def _gated(pod: Pod) -> Pod:
    if pod.annotations.get(GATE) != "true":
        return pod
    gates = pod.spec.get("schedulingGates") or []
    if not isinstance(gates, list) or {"name": GATE} in gates:
        return pod
    return Pod({**pod.raw, "spec": {**pod.spec, "schedulingGates": [*gates, {"name": GATE}]}})


def budget_error(text: str) -> str | None:
    """What keeps ``text`` from being a disruption budget: a count, or a part of a hundred."""
    number = _integer(text)
    if number is not None:
        return None if number > 0 else "must be > 0"
    percent = _integer(text.replace("%", "")) if "%" in text else None
    if percent is None:
        return "must be an integer, or a percentage such as 50%"
    return None if 1 <= percent <= 99 else "must be from 1% to 99%"


def _integer(text: str) -> int | None:
    sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        return None
    return int(sign + digits)


def _budgets(case: Case[Pod]) -> Iterator[Violation]:
    if case.object.scheduler_name != case.limits.scheduler_name:
        return
    annotations = case.object.annotations
    for key in BUDGETS:
        wrong = budget_error(annotations[key]) if key in annotations else None
        if wrong is not None:
            place = paths.at("metadata.annotations", key)
            yield Violation(place, f"{wrong}, is {shown(annotations[key])}")


def _one_budget(case: Case[Pod]) -> Iterator[Violation]:
    if case.object.scheduler_name != case.limits.scheduler_name:
        return
    if all(key in case.object.annotations for key in BUDGETS):
        message = f"must not be beside {JDB_MIN_AVAILABLE}: a pod has one budget"
        yield Violation(paths.at("metadata.annotations", JDB_MAX_UNAVAILABLE), message)


RULES: Final = (
    Rule(
        name="pod.budget",
        kinds=("Pod",),
        operations=CREATION,
        check=_budgets,
        path=f"metadata.annotations[{JDB_MIN_AVAILABLE}], …[{JDB_MAX_UNAVAILABLE}]",
        says="A budget of a pod of ours is a count > 0, or from 1% to 99%.",
        example=f'{JDB_MIN_AVAILABLE}: "-1"',
    ),
    Rule(
        name="pod.one-budget",
        kinds=("Pod",),
        operations=CREATION,
        check=_one_budget,
        path=f"metadata.annotations[{JDB_MAX_UNAVAILABLE}]",
        says="A pod of ours has one of the two budgets.",
        example="both annotations",
    ),
)

"""Rules for one queue by itself: its amounts fit each other, and what is always there stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final

from hekla.api.fields import shown
from hekla.api.queue import Queue, QueueSpec
from hekla.domain import paths, quantity
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.names import DEFAULT_QUEUE, ROOT_QUEUE
from hekla.domain.phases import QueueState
from services.webhook.rules.defaults import HIERARCHY, HIERARCHY_WEIGHTS
from services.webhook.rules.pods import is_integral
from services.webhook.rules.registry import DELETION, UPDATES, WRITES, Case, Rule

QUEUE: Final = ("Queue",)
ALWAYS_THERE: Final = frozenset({DEFAULT_QUEUE, ROOT_QUEUE})
STATES: Final = (QueueState.OPEN, QueueState.CLOSED)

Amounts = Mapping[str, Fraction]


def lists(spec: QueueSpec) -> Mapping[str, Amounts]:
    """The three lists of amounts of a queue, by where they stand in its spec."""
    guarantee = spec.guarantee.resource if spec.guarantee is not None else None
    return {
        "capability": parsed(spec.capability),
        "deserved": parsed(spec.deserved),
        "guarantee.resource": parsed(guarantee),
    }


def parsed(values: Mapping[str, str] | None) -> Amounts:
    """The amounts that can be read; others are out of bounds, and told of as such."""
    amounts = {}
    for resource, text in (values or {}).items():
        try:
            amounts[resource] = quantity.parse(text)
        except InvalidError:
            continue
    return amounts


def text(amount: Fraction) -> str:
    """An amount as messages show it."""
    return quantity.format(amount)


def _amounts(case: Case[Queue]) -> Iterator[Violation]:
    for name, amounts in lists(case.object.spec).items():
        for resource, amount in amounts.items():
            place = paths.at(f"spec.{name}", resource)
            if amount < 0:
                yield Violation(place, f"must be >= 0, is {text(amount)}")
            elif is_integral(resource) and amount % 1:
                yield Violation(place, f"must be a whole number, is {text(amount)}")


def _guarantee(case: Case[Queue]) -> Iterator[Violation]:
    of = lists(case.object.spec)
    deserved = of["deserved"]
    for resource, amount in of["guarantee.resource"].items():
        place = paths.at("spec.guarantee.resource", resource)
        if resource not in deserved:
            yield Violation(place, f"needs at least as much {resource} in spec.deserved")
        elif amount > deserved[resource]:
            message = f"must be <= spec.deserved, which is {text(deserved[resource])};"
            yield Violation(place, f"{message} is {text(amount)}")


def _deserved(case: Case[Queue]) -> Iterator[Violation]:
    of = lists(case.object.spec)
    capability = of["capability"]
    for resource, amount in of["deserved"].items():
        if resource in capability and amount > capability[resource]:
            message = f"must be <= spec.capability, which is {text(capability[resource])};"
            place = paths.at("spec.deserved", resource)
            yield Violation(place, f"{message} is {text(amount)}")


def _state(case: Case[Queue]) -> Iterator[Violation]:
    state = case.object.status.state
    kept = case.old is not None and case.old.status.state == state
    if state and state not in STATES and not kept:
        message = f"must be one of {', '.join(STATES)}, is {shown(state)}"
        yield Violation("status.state", message)


def _hierarchy(case: Case[Queue]) -> Iterator[Violation]:
    annotations = case.object.metadata.annotations or {}
    path, weights = annotations.get(HIERARCHY, ""), annotations.get(HIERARCHY_WEIGHTS, "")
    if not path and not weights:
        return
    place = paths.at("metadata.annotations", HIERARCHY_WEIGHTS)
    if len(path.split("/")) != len(weights.split("/")):
        message = f"must have as many parts as {HIERARCHY}, {shown(path)}; is {shown(weights)}"
        yield Violation(place, message)
        return
    for weight in weights.split("/"):
        if not _is_positive(weight):
            yield Violation(place, f"must have numbers > 0, has {shown(weight)}")


def _is_positive(word: str) -> bool:
    try:
        return 0 < float(word) < float("inf")
    except ValueError:
        return False


def _hierarchy_leaf(case: Case[Queue]) -> Iterator[Violation]:
    path = (case.object.metadata.annotations or {}).get(HIERARCHY, "")
    if not path:
        return
    for name, other in case.world.hierarchies().items():
        if name != case.object.metadata.name and other.startswith(f"{path}/"):
            message = f"must not be above {shown(other)}, which queue {shown(name)} has"
            place = paths.at("metadata.annotations", HIERARCHY)
            yield Violation(place, f"{message}; is {shown(path)}")
            return


def _root_resources(case: Case[Queue]) -> Iterator[Violation]:
    assert case.old is not None
    if case.object.metadata.name != ROOT_QUEUE or not case.limits.protect_root_queue:
        return
    before = lists(case.old.spec)
    for name, amounts in lists(case.object.spec).items():
        if amounts != before[name]:
            message = f"must not change: the resources of {ROOT_QUEUE} are the cluster's"
            yield Violation(f"spec.{name}", message)


def _always_there(case: Case[Queue]) -> Iterator[Violation]:
    name = case.object.metadata.name
    if name in ALWAYS_THERE:
        yield Violation("metadata.name", f"must not be {name}, which is always there")


def _children_first(case: Case[Queue]) -> Iterator[Violation]:
    name = case.object.metadata.name
    if name in ALWAYS_THERE:
        return
    if children := case.world.staying_queues(name):
        below = ", ".join(sorted(children)[:10])
        yield Violation("metadata.name", f"is {shown(name)}, below which there are {below}")


def _pods_first(case: Case[Queue]) -> Iterator[Violation]:
    if not case.limits.protect_used_queues:
        return
    running = case.world.running_pods(case.object.metadata.name)
    if running > 0:
        name = shown(case.object.metadata.name)
        message = f"is {name}, in which {running} pods run"
        yield Violation("metadata.name", message, passing=True)


RULES: Final = (
    Rule(
        name="queue.amounts",
        kinds=QUEUE,
        operations=WRITES,
        check=_amounts,
        path="spec.capability, spec.deserved, spec.guarantee.resource",
        says="Amounts are not negative, and whole where the resource has only whole ones.",
        example='capability: {cpu: "-1"}',
    ),
    Rule(
        name="queue.guarantee",
        kinds=QUEUE,
        operations=WRITES,
        check=_guarantee,
        path="spec.guarantee.resource",
        says="What is guaranteed is deserved.",
        example="guarantee: {resource: {cpu: 2}}, deserved: {cpu: 1}",
    ),
    Rule(
        name="queue.deserved",
        kinds=QUEUE,
        operations=WRITES,
        check=_deserved,
        path="spec.deserved",
        says="What is deserved is within the capability, where that has a bound.",
        example="deserved: {cpu: 2}, capability: {cpu: 1}",
    ),
    Rule(
        name="queue.state",
        kinds=QUEUE,
        operations=WRITES,
        check=_state,
        path="status.state",
        says=f"A state that is given is {' or '.join(STATES)}.",
        example="status: {state: Closing}",
    ),
    Rule(
        name="queue.hierarchy",
        kinds=QUEUE,
        operations=WRITES,
        check=_hierarchy,
        path=f"metadata.annotations[{HIERARCHY_WEIGHTS}]",
        says=f"`{HIERARCHY_WEIGHTS}` has a number > 0 for each part of `{HIERARCHY}`.",
        example="root/a with 1/-1",
    ),
    Rule(
        name="queue.hierarchy-leaf",
        kinds=QUEUE,
        operations=WRITES,
        check=_hierarchy_leaf,
        path=f"metadata.annotations[{HIERARCHY}]",
        says=f"No other queue has a `{HIERARCHY}` below this one's.",
        example="root/a where a queue has root/a/b",
    ),
    Rule(
        name="queue.root-resources",
        kinds=QUEUE,
        operations=UPDATES,
        check=_root_resources,
        path="spec.capability, spec.deserved, spec.guarantee.resource",
        says="The amounts of root do not change (`protect_root_queue`).",
        example="root gets capability: {cpu: 1}",
    ),
    Rule(
        name="queue.always-there",
        kinds=QUEUE,
        operations=DELETION,
        check=_always_there,
        path="metadata.name",
        says="root and default are not deleted.",
        example="hekla queue delete default",
    ),
    Rule(
        name="queue.children-first",
        kinds=QUEUE,
        operations=DELETION,
        check=_children_first,
        path="metadata.name",
        says="A queue is not deleted while others stand below it.",
        example="hekla queue delete parent",
    ),
    Rule(
        name="queue.pods-first",
        kinds=QUEUE,
        operations=DELETION,
        check=_pods_first,
        path="metadata.name",
        says="Only with `protect_used_queues`: a queue is not deleted while pods run in it.",
        example="hekla queue delete busy",
    ),
)

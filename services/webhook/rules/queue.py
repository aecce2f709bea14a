"""Rules for queues: amounts that fit each other, a place in the tree, what is always there."""

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
from hekla.domain.resources import PODS
from services.webhook.rules.defaults import HIERARCHY, HIERARCHY_WEIGHTS
from services.webhook.rules.pods import is_integral
from services.webhook.rules.world import Limits, World

Amounts = Mapping[str, Fraction]

ALWAYS_THERE: Final = frozenset({DEFAULT_QUEUE, ROOT_QUEUE})
_STATES: Final = (QueueState.OPEN, QueueState.CLOSED)


def creation_violations(queue: Queue, world: World, limits: Limits) -> Iterator[Violation]:
    """All that is wrong with a new queue whose defaults are filled in."""
    yield from _object(queue)
    state = queue.status.state
    if state and state not in _STATES:
        message = f"must be one of {', '.join(_STATES)}, is {shown(state)}"
        yield Violation("status.state", message)
    yield from _place(queue, world, limits)


def update_violations(
    queue: Queue, old: Queue, world: World, limits: Limits
) -> Iterator[Violation]:
    """All that is wrong with ``queue`` in place of ``old``."""
    yield from _object(queue)
    if _parent(queue.spec) != _parent(old.spec):
        if queue.metadata.name == ROOT_QUEUE:
            yield Violation("spec.parent", f"must be empty: {ROOT_QUEUE} stands above all")
        else:
            yield from _place(queue, world, limits)
    if queue.metadata.name == ROOT_QUEUE and limits.protect_root_queue:
        for name, amounts in _lists(queue.spec).items():
            if amounts != _lists(old.spec)[name]:
                message = f"must not change: the resources of {ROOT_QUEUE} are the cluster's"
                yield Violation(f"spec.{name}", message)


def deletion_violations(name: str, world: World) -> Iterator[Violation]:
    """Why the queue of that name cannot be deleted."""
    if name in ALWAYS_THERE:
        yield Violation("metadata.name", f"must not be {name}, which is always there")
    elif children := world.child_queues(name):
        below = ", ".join(sorted(children)[:10])
        yield Violation("metadata.name", f"is {shown(name)}, below which there are {below}")


def _parent(spec: QueueSpec) -> str:
    return spec.parent or ROOT_QUEUE


def _object(queue: Queue) -> Iterator[Violation]:
    lists = _lists(queue.spec)
    for name, amounts in lists.items():
        yield from _amounts(amounts, f"spec.{name}")
    deserved, capability = lists["deserved"], lists["capability"]
    for resource, amount in lists["guarantee.resource"].items():
        place = paths.at("spec.guarantee.resource", resource)
        if resource not in deserved:
            yield Violation(place, f"needs at least as much {resource} in spec.deserved")
        elif amount > deserved[resource]:
            message = f"must be <= spec.deserved, which is {_text(deserved[resource])};"
            yield Violation(place, f"{message} is {_text(amount)}")
    for resource, amount in deserved.items():
        if resource in capability and amount > capability[resource]:
            message = f"must be <= spec.capability, which is {_text(capability[resource])};"
            place = paths.at("spec.deserved", resource)
            yield Violation(place, f"{message} is {_text(amount)}")
    yield from _hierarchy(queue.metadata.annotations or {})


def _lists(spec: QueueSpec) -> Mapping[str, Amounts]:
    guarantee = spec.guarantee.resource if spec.guarantee is not None else None
    return {
        "capability": _parsed(spec.capability),
        "deserved": _parsed(spec.deserved),
        "guarantee.resource": _parsed(guarantee),
    }


def _parsed(values: Mapping[str, str] | None) -> Amounts:
    """The amounts that can be read; others are out of bounds, and told of as such."""
    amounts = {}
    for resource, text in (values or {}).items():
        try:
            amounts[resource] = quantity.parse(text)
        except InvalidError:
            continue
    return amounts


def _amounts(amounts: Amounts, path: str) -> Iterator[Violation]:
    for resource, amount in amounts.items():
        place = paths.at(path, resource)
        if amount < 0:
            yield Violation(place, f"must be >= 0, is {_text(amount)}")
        elif is_integral(resource) and amount % 1:
            yield Violation(place, f"must be a whole number, is {_text(amount)}")


def _text(amount: Fraction) -> str:
    return quantity.format(amount)


def _hierarchy(annotations: Mapping[str, str]) -> Iterator[Violation]:
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


def _is_positive(text: str) -> bool:
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False


def _place(queue: Queue, world: World, limits: Limits) -> Iterator[Violation]:
    """Whether the queue can stand below its parent."""
    name, parent = queue.metadata.name, _parent(queue.spec)
    if parent == ROOT_QUEUE:
        return
    if parent == name:
        yield Violation("spec.parent", f"must not be the queue itself: {shown(name)}")
        return
    above = world.queue(parent)
    if above is None:
        yield Violation("spec.parent", f"does not exist: {shown(parent)}")
        return
    yield from _depth(queue, above, world, limits)
    running = _parsed(above.status.allocated).get(PODS, 0)
    if running > 0 and not world.child_queues(parent):
        message = (
            f"must not be {shown(parent)}: {running} pods run in it, so it takes no children"
        )
        yield Violation("spec.parent", message)


def _chain(names: list[str]) -> str:
    return paths.printable(" < ".join(names[:10]))


def _depth(queue: Queue, above: Queue, world: World, limits: Limits) -> Iterator[Violation]:
    seen = [queue.metadata.name]
    while True:
        seen.append(above.metadata.name)
        if above.metadata.name == queue.metadata.name:
            message = f"must not be below the queue itself: {_chain(seen)}"
            yield Violation("spec.parent", message)
            return
        if len(seen) > limits.max_queue_depth:
            message = f"must not be more than {limits.max_queue_depth} queues below each other"
            yield Violation("spec.parent", f"{message}: {_chain(seen)}")
            return
        if _parent(above.spec) == ROOT_QUEUE:
            return
        next_above = world.queue(_parent(above.spec))
        if next_above is None:
            missing = shown(_parent(above.spec))
            yield Violation("spec.parent", f"stands below {missing}, which does not exist")
            return
        above = next_above

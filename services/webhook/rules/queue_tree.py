"""Rules for the place of a queue in the tree, and for what the tree shares out.

What a queue does not name is without bound, or a share of nothing promised: only amounts
that are written down are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final

from hekla.api.fields import shown
from hekla.api.queue import Queue, QueueSpec
from hekla.domain import paths
from hekla.domain.errors import Violation
from hekla.domain.names import ROOT_QUEUE
from hekla.domain.phases import QueueState
from services.webhook.rules.queue import QUEUE, Amounts, lists, parsed, text
from services.webhook.rules.registry import UPDATES, WRITES, Case, Rule
from services.webhook.rules.world import World

SHARED: Final = ("guarantee.resource", "deserved")
"""What children have together is no more than what their parent has."""


def parent_of(spec: QueueSpec) -> str:
    """The name of the queue above."""
    return spec.parent or ROOT_QUEUE


def _moved(case: Case[Queue]) -> bool:
    """Whether the queue is new, or comes below another one."""
    return case.old is None or parent_of(case.object.spec) != parent_of(case.old.spec)


def _resized(case: Case[Queue]) -> bool:
    """Whether the queue is new, or what it shares out or takes changes."""
    return case.old is None or _moved(case) or (lists(case.object.spec) != lists(case.old.spec))


def _above(case: Case[Queue]) -> Queue | None:
    """The parent, if the queue is below another than root that exists."""
    parent = parent_of(case.object.spec)
    if parent in (ROOT_QUEUE, case.object.metadata.name):
        return None
    return case.world.queue(parent)


def _root_stays(case: Case[Queue]) -> Iterator[Violation]:
    if case.object.metadata.name == ROOT_QUEUE and _moved(case):
        yield Violation("spec.parent", f"must be empty: {ROOT_QUEUE} stands above all")


def _parent(case: Case[Queue]) -> Iterator[Violation]:
    name, parent = case.object.metadata.name, parent_of(case.object.spec)
    if ROOT_QUEUE in {parent, name} or not _moved(case):
        return
    if parent == name:
        yield Violation("spec.parent", f"must not be the queue itself: {shown(name)}")
    elif case.world.queue(parent) is None:
        yield Violation("spec.parent", f"does not exist: {shown(parent)}")


def _depth(case: Case[Queue]) -> Iterator[Violation]:
    queue, above = case.object, _above(case)
    if above is None or queue.metadata.name == ROOT_QUEUE or not _moved(case):
        return
    most = case.limits.max_queue_depth
    seen = [queue.metadata.name]
    while True:
        seen.append(above.metadata.name)
        if above.metadata.name == queue.metadata.name:
            message = f"must not be below the queue itself: {_chain(seen)}"
            yield Violation("spec.parent", message)
            return
        if len(seen) > most:
            message = f"must not be more than {most} queues below each other"
            yield Violation("spec.parent", f"{message}: {_chain(seen)}")
            return
        if parent_of(above.spec) == ROOT_QUEUE:
            break
        next_above = case.world.queue(parent_of(above.spec))
        if next_above is None:
            missing = shown(parent_of(above.spec))
            yield Violation("spec.parent", f"stands below {missing}, which does not exist")
            return
        above = next_above
    if case.old is not None:
        below = _height(queue.metadata.name, case.world, most)
        if len(seen) + below > most:
            message = (
                f"must not be more than {most} queues below each other, with {below} below"
            )
            yield Violation("spec.parent", f"{message} this one: {_chain(seen)}")


def _chain(names: list[str]) -> str:
    return paths.printable(" < ".join(names[:10]))


def _height(name: str, world: World, most: int) -> int:
    """How many queues stand below each other under that one; no more than ``most``."""
    level, height = list(world.child_queues(name)), 0
    while level and height < most:
        height += 1
        level = [child for each in level for child in world.child_queues(each)]
    return height


def _idle_parent(case: Case[Queue]) -> Iterator[Violation]:
    above = _above(case)
    if above is None or not _moved(case):
        return
    others = set(case.world.child_queues(above.metadata.name)) - {case.object.metadata.name}
    running = case.world.running_pods(above.metadata.name) if not others else 0
    if running > 0:
        name = shown(above.metadata.name)
        message = f"must not be {name}: {running} pods run in it, so it takes no children"
        yield Violation("spec.parent", message)


def _open_parent(case: Case[Queue]) -> Iterator[Violation]:
    above = _above(case)
    now, before = case.object.status.state, case.old.status.state if case.old else None
    if above is None or now != QueueState.OPEN or before in (None, "", QueueState.OPEN):
        return
    state = above.status.state or QueueState.OPEN
    if state != QueueState.OPEN:
        message = f"must not be {now} below {shown(above.metadata.name)}, which is {state}"
        yield Violation("status.state", message, passing=True)


def _ancestors_capability(case: Case[Queue]) -> Iterator[Violation]:
    if case.object.metadata.name == ROOT_QUEUE or not _resized(case):
        return
    for resource, amount in parsed(case.object.spec.capability).items():
        above, left = _above(case), case.limits.max_queue_depth + 1
        while above is not None and left > 0:
            bound = parsed(above.spec.capability).get(resource)
            if bound is not None:
                if amount > bound:
                    message = (
                        f"must be <= the capability of {shown(above.metadata.name)} above it,"
                        f" {text(bound)}; is {text(amount)}"
                    )
                    yield Violation(paths.at("spec.capability", resource), message)
                break
            parent = parent_of(above.spec)
            above = case.world.queue(parent) if parent != ROOT_QUEUE else None
            left -= 1


def _descendants_capability(case: Case[Queue]) -> Iterator[Violation]:
    name = case.object.metadata.name
    if name == ROOT_QUEUE or not _resized(case) or not case.world.child_queues(name):
        return
    for resource, amount in parsed(case.object.spec.capability).items():
        below = _largest_below(name, resource, case.world, case.limits.max_queue_depth + 1)
        if below is not None and below[0] > amount:
            message = (
                f"must be >= the capability of {shown(below[1])} below it, {text(below[0])};"
                f" is {text(amount)}"
            )
            yield Violation(paths.at("spec.capability", resource), message)


def _largest_below(
    name: str, resource: str, world: World, depth: int
) -> tuple[Fraction, str] | None:
    """The largest of the first capabilities on the ways down, and whose it is."""
    found: list[tuple[Fraction, str]] = []
    level = list(world.child_queues(name))
    while level and depth > 0:
        further: list[str] = []
        for each in level:
            queue = world.queue(each)
            bound = parsed(queue.spec.capability).get(resource) if queue is not None else None
            if bound is not None:
                found.append((bound, each))
            else:
                further += world.child_queues(each)
        level, depth = further, depth - 1
    return max(found, default=None)


def _shares_of_parent(case: Case[Queue]) -> Iterator[Violation]:
    name, above = case.object.metadata.name, _above(case)
    if above is None or name == ROOT_QUEUE or not _resized(case):
        return
    parent, has = above.metadata.name, lists(above.spec)
    others = _sums(parent, case.world, without=name)
    for key in SHARED:
        for resource, amount in lists(case.object.spec)[key].items():
            bound, total = (
                has[key].get(resource),
                others[key].get(resource, Fraction()) + amount,
            )
            if bound is not None and total > bound:
                message = (
                    f"makes {text(total)} with the other queues below {shown(parent)}, which"
                    f" has {text(bound)}; is {text(amount)}"
                )
                yield Violation(paths.at(f"spec.{key}", resource), message)


def _shares_of_children(case: Case[Queue]) -> Iterator[Violation]:
    name = case.object.metadata.name
    if name == ROOT_QUEUE or not _resized(case) or not case.world.child_queues(name):
        return
    below = _sums(name, case.world)
    for key in SHARED:
        for resource, amount in lists(case.object.spec)[key].items():
            total = below[key].get(resource, Fraction())
            if total > amount:
                message = f"must be >= what the queues below have, {text(total)};"
                place = paths.at(f"spec.{key}", resource)
                yield Violation(place, f"{message} is {text(amount)}")


def _sums(name: str, world: World, *, without: str = "") -> Mapping[str, Amounts]:
    """What the children of a queue have together."""
    sums: dict[str, dict[str, Fraction]] = {key: {} for key in SHARED}
    for child in world.child_queues(name):
        queue = world.queue(child) if child != without else None
        for key in SHARED if queue is not None else ():
            assert queue is not None
            for resource, amount in lists(queue.spec)[key].items():
                sums[key][resource] = sums[key].get(resource, Fraction()) + amount
    return sums


RULES: Final = (
    Rule(
        name="queue.root-place",
        kinds=QUEUE,
        operations=UPDATES,
        check=_root_stays,
        path="spec.parent",
        says="root stands below no queue.",
        example="root gets parent: a",
        beyond=True,
    ),
    Rule(
        name="queue.parent",
        kinds=QUEUE,
        operations=WRITES,
        check=_parent,
        path="spec.parent",
        says="The parent exists and is another queue.",
        example="parent: nope",
    ),
    Rule(
        name="queue.depth",
        kinds=QUEUE,
        operations=WRITES,
        check=_depth,
        path="spec.parent",
        says="No more queues stand below each other under root than the installation allows"
        " (`max_queue_depth`), also below a queue that moves, and none below itself.",
        example="a sixth queue below five",
    ),
    Rule(
        name="queue.idle-parent",
        kinds=QUEUE,
        operations=WRITES,
        check=_idle_parent,
        path="spec.parent",
        says="A queue in which pods run gets no first child.",
        example="parent: busy",
    ),
    Rule(
        name="queue.open-parent",
        kinds=QUEUE,
        operations=UPDATES,
        check=_open_parent,
        path="status.state",
        says="A queue is not opened below one that is not Open. (A passing refusal.)",
        example="Closed becomes Open below a Closed queue",
        beyond=True,
    ),
    Rule(
        name="queue.capability-above",
        kinds=QUEUE,
        operations=WRITES,
        check=_ancestors_capability,
        path="spec.capability",
        says="A capability is within that of the nearest queue above, but root, that has one"
        " of the resource.",
        example="capability: {cpu: 20} below {cpu: 10}",
    ),
    Rule(
        name="queue.capability-below",
        kinds=QUEUE,
        operations=WRITES,
        check=_descendants_capability,
        path="spec.capability",
        says="A capability is not below that of a queue below.",
        example="capability: {cpu: 10} above {cpu: 12}",
    ),
    Rule(
        name="queue.shares-above",
        kinds=QUEUE,
        operations=WRITES,
        check=_shares_of_parent,
        path="spec.guarantee.resource, spec.deserved",
        says="What the queues below a parent other than root have together is within what the"
        " parent has, where that names the resource.",
        example="deserved: {cpu: 8} beside {cpu: 5} below {cpu: 10}",
    ),
    Rule(
        name="queue.shares-below",
        kinds=QUEUE,
        operations=WRITES,
        check=_shares_of_children,
        path="spec.guarantee.resource, spec.deserved",
        says="What a queue has is not less than what the queues below it have together.",
        example="guarantee: {cpu: 10} above 8 and 5",
    ),
)

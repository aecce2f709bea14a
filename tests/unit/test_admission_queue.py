"""Queues are completed and judged as the webhook promises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from hekla.api.meta import ObjectMeta
from hekla.api.queue import Guarantee, Queue, QueueSpec, QueueStatus
from services.webhook.rules.admission import Operation, admit
from services.webhook.rules.world import Limits
from tests.support.objects import make_queue, models
from tests.support.worlds import FixedWorld

WORLD = FixedWorld()
HIERARCHY, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"


def new(name: str = "q", **spec: Any) -> Queue:
    return Queue(metadata=ObjectMeta(name=name), spec=QueueSpec(**spec))


def annotated(**annotations: str) -> Queue:
    names = {"hierarchy": HIERARCHY, "weights": WEIGHTS}
    values = {names[key]: value for key, value in annotations.items()}
    return Queue(metadata=ObjectMeta(name="q", annotations=values))


def accepted(queue: Queue, world: FixedWorld = WORLD) -> Queue:
    answer = admit(Operation.CREATE, queue, None, world)
    assert answer.violations == ()
    return answer.object


def refused(queue: Queue, world: FixedWorld = WORLD) -> dict[str, str]:
    answer = admit(Operation.CREATE, queue, None, world)
    assert not answer.allowed
    return {violation.path: violation.message for violation in answer.violations}


def updated(queue: Queue, old: Queue, world: FixedWorld = WORLD) -> dict[str, str]:
    answer = admit(Operation.UPDATE, queue, old, world)
    return {violation.path: violation.message for violation in answer.violations}


def test_a_queue_that_says_nothing_is_completed() -> None:
    spec = accepted(new(weight=0)).spec

    assert (spec.weight, spec.reclaimable, spec.parent) == (1, True, "root")


def test_what_a_queue_says_stays() -> None:
    spec = accepted(new(weight=3, reclaimable=False)).spec

    assert (spec.weight, spec.reclaimable) == (3, False)


def test_a_queue_belongs_to_no_namespace() -> None:
    queue = Queue(metadata=ObjectMeta(name="q", namespace="default"))

    assert accepted(queue).metadata.namespace == ""


@pytest.mark.parametrize(
    ("path", "weights", "stored"),
    [
        ("eng/dev", "2/8", {HIERARCHY: "root/eng/dev", WEIGHTS: "1/2/8"}),
        ("root/eng", "1/2", {HIERARCHY: "root/eng", WEIGHTS: "1/2"}),
        ("rootish/x", "1/2", {HIERARCHY: "rootish/x", WEIGHTS: "1/2"}),
    ],
)
def test_a_hierarchy_starts_at_root(path: str, weights: str, stored: dict[str, str]) -> None:
    assert accepted(annotated(hierarchy=path, weights=weights)).metadata.annotations == stored


@pytest.mark.parametrize(
    "queue",
    [
        annotated(hierarchy="root/a", weights="1"),
        annotated(hierarchy="root/a", weights="1/0"),
        annotated(hierarchy="root/a", weights="1/-2"),
        annotated(hierarchy="root/a", weights="1/x"),
        annotated(hierarchy="root/a", weights="1/nan"),
        annotated(hierarchy="root/a"),
    ],
)
def test_a_hierarchy_that_does_not_add_up_is_refused(queue: Queue) -> None:
    assert list(refused(queue)) == [f"metadata.annotations[{WEIGHTS}]"]


@pytest.mark.parametrize(
    ("queue", "path", "message"),
    [
        (new(weight=-1), "spec.weight", "must be >= 1, is -1"),
        (new(weight=65536), "spec.weight", "must be <= 65535"),
        (new(capability={"cpu": "-1"}), "spec.capability.cpu", "must be >= 0, is -1"),
        (new(capability={"pods": "1.5"}), "spec.capability.pods", "must be a whole number"),
        (
            new(deserved={"x.io/gpu": "500m"}),
            "spec.deserved[x.io/gpu]",
            "must be a whole number",
        ),
        (new(deserved={"memory": "-1Gi"}), "spec.deserved.memory", "must be >= 0, is -1"),
        (new(capability={"cpu": "x"}), "spec.capability.cpu", "must be a quantity"),
        (
            new(deserved={"cpu": "3"}, capability={"cpu": "2500m"}),
            "spec.deserved.cpu",
            "must be <= spec.capability, which is 2500m; is 3",
        ),
        (
            new(guarantee=Guarantee(resource={"cpu": "1"})),
            "spec.guarantee.resource.cpu",
            "needs at least as much cpu in spec.deserved",
        ),
        (
            new(guarantee=Guarantee(resource={"cpu": "2"}), deserved={"cpu": "1"}),
            "spec.guarantee.resource.cpu",
            "must be <= spec.deserved, which is 1; is 2",
        ),
        (
            new(guarantee=Guarantee(resource={"cpu": "-1"}), deserved={"cpu": "1"}),
            "spec.guarantee.resource.cpu",
            "must be >= 0",
        ),
        (make_queue("q", "Closing"), "status.state", "must be one of Open, Closed"),
        (make_queue("q", "Ajar"), "status.state", "must be one of"),
        (new(dequeue_strategy="lifo"), "spec.dequeueStrategy", "must be one of fifo, traverse"),
        (new("Q"), "metadata.name", "must consist of lower case"),
        (new(parent="nope"), "spec.parent", 'does not exist: "nope"'),
        (new(parent="q"), "spec.parent", "must not be the queue itself"),
        (new(parent=""), "spec.parent", 'is ""'),
    ],
)
def test_a_queue_that_cannot_work_is_refused(queue: Queue, path: str, message: str) -> None:
    assert message in refused(queue)[path]


@pytest.mark.parametrize(
    "queue",
    [
        new(capability={"cpu": "1500m", "memory": "1.5Gi", "pods": "10"}),
        new(deserved={"cpu": "2"}, capability={"memory": "1Gi"}),
        new(guarantee=Guarantee(resource={"cpu": "1"}), deserved={"cpu": "1000m"}),
        new(guarantee=Guarantee()),
        new(parent="root"),
        make_queue("q", "Closed"),
    ],
)
def test_a_queue_that_works_is_accepted(queue: Queue) -> None:
    accepted(queue)


def chain(length: int) -> list[Queue]:
    names = [f"q{number}" for number in range(1, length + 1)]
    parents = ["root", *names[:-1]]
    return [make_queue(name, parent=above) for above, name in zip(parents, names, strict=True)]


def test_five_queues_may_stand_below_each_other() -> None:
    world = FixedWorld(*chain(5))

    accepted(new(parent="q4"), world)
    assert "must not be more than 5 queues" in refused(new(parent="q5"), world)["spec.parent"]
    deeper = admit(Operation.CREATE, new(parent="q5"), None, world, Limits(max_queue_depth=6))
    assert deeper.allowed


def test_a_queue_whose_ancestor_is_missing_is_refused() -> None:
    world = FixedWorld(make_queue("a", parent="gone"))

    assert 'stands below "gone"' in refused(new(parent="a"), world)["spec.parent"]


def test_a_queue_that_runs_pods_takes_no_children() -> None:
    busy = Queue(metadata=ObjectMeta(name="busy"), status=QueueStatus(allocated={"pods": "3"}))

    assert "3 pods run in it" in refused(new(parent="busy"), FixedWorld(busy))["spec.parent"]
    accepted(new(parent="busy"), FixedWorld(busy, make_queue("sister", parent="busy")))


def test_a_queue_must_not_move_below_itself() -> None:
    a, b = make_queue("a"), make_queue("b", parent="a")
    c = make_queue("c", parent="b")
    world = FixedWorld(a, b, c)

    moved = updated(make_queue("a", parent="c"), a, world)

    assert moved["spec.parent"] == "must not be below the queue itself: a < c < b < a"
    assert updated(make_queue("c", parent="a"), c, world) == {}


def test_an_update_that_leaves_the_parent_alone_does_not_ask_for_it() -> None:
    old = make_queue("q", parent="gone")

    assert updated(make_queue("q", parent="gone", weight=5), old) == {}
    assert "spec.parent" in updated(make_queue("q", parent="gone too"), old)


def test_an_update_is_held_to_the_rules_of_amounts() -> None:
    queue = make_queue("q", deserved={"cpu": "2"}, capability={"cpu": "1"})

    assert list(updated(queue, make_queue("q"))) == ["spec.deserved.cpu"]


def test_a_queue_that_is_closing_may_be_changed() -> None:
    assert updated(make_queue("q", "Closing", weight=5), make_queue("q", "Closing")) == {}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"capability": {"cpu": "1"}}, "spec.capability"),
        ({"deserved": {"cpu": "1"}}, "spec.deserved"),
        ({"parent": "q"}, "spec.parent"),
    ],
)
def test_the_root_queue_is_protected(change: dict[str, Any], path: str) -> None:
    world = FixedWorld(make_queue("q"))

    assert list(updated(make_queue("root", **change), make_queue("root"), world)) == [path]


def test_the_root_queue_may_change_otherwise() -> None:
    old = make_queue("root", capability={"cpu": "1"})
    same = make_queue("root", capability={"cpu": "1000m"}, weight=7)

    assert updated(same, old) == {}
    free = admit(
        Operation.UPDATE, make_queue("root"), old, WORLD, Limits(protect_root_queue=False)
    )
    assert free.allowed


@pytest.mark.parametrize("name", ["root", "default", "parent"])
def test_a_queue_that_is_needed_is_not_deleted(name: str) -> None:
    """C110."""
    world = FixedWorld(make_queue("parent"), make_queue("child", parent="parent"))

    [found] = admit(Operation.DELETE, make_queue(name), None, world).violations

    assert found.path == "metadata.name"
    assert name != "parent" or "child" in found.message


def test_a_queue_that_nothing_needs_may_be_deleted() -> None:
    assert admit(Operation.DELETE, make_queue("q"), None, WORLD).allowed


def test_what_the_scheduler_does_not_know_yet_is_warned_of() -> None:
    queue = new(weight=2, capability={"cpu": "1"}, dequeue_strategy="fifo", priority=3)
    # A capability is kept by the scheduler; the rest is not.

    warned = {each.split()[0] for each in admit(Operation.CREATE, queue, None, WORLD).warnings}

    fields = {"spec.weight", "spec.dequeueStrategy:", "spec.priority"}
    assert warned == fields
    assert admit(Operation.CREATE, new(), None, WORLD).warnings == ()


@given(models(Queue), models(Queue))
@settings(max_examples=25)
def test_no_queue_breaks_the_rules(queue: Queue, old: Queue) -> None:
    for operation in Operation:
        answer = admit(operation, queue, old, FixedWorld(old))
        assert answer.allowed is not bool(answer.violations)
        assert all(str(violation).isprintable() for violation in answer.violations)

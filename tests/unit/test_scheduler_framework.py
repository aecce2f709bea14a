"""How the answers of plugins combine, shown with toy plugins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hekla.domain.phases import PodGroupPhase
from services.scheduler import policy
from services.scheduler.arguments import Arguments
from services.scheduler.core.classes import PodClass
from services.scheduler.core.fixed_point import SCORE_UNIT
from services.scheduler.core.groups import GroupState, Refusal
from services.scheduler.core.line import last_true
from services.scheduler.core.load import Load
from services.scheduler.core.nodes import Ints
from services.scheduler.core.objects import EPOCH, Group, Pod, PodSpec, Queue
from services.scheduler.core.queues import QueueState
from services.scheduler.core.scopes import domain
from services.scheduler.core.search import Box, Cover, as_bits
from services.scheduler.framework import Enabled, Framework, Plugin, Vote, share
from services.scheduler.plugins.binpack import Binpack
from tests.support.cluster import add_gang, cluster_with, decide, node, placed

GROUP = GroupState(Group("g", "ns", "g"))
QUEUE = QueueState("q")


class Toy:
    """A plugin that answers what it was told to."""

    def __init__(self, name: str, answer: object) -> None:
        self.name = name
        self.answer = answer


class Valid(Toy):
    def job_valid(self, group: GroupState) -> Refusal | None:
        assert self.answer is None or isinstance(self.answer, Refusal)
        return self.answer


class Ready(Toy):
    def job_ready(self, group: GroupState) -> bool:
        return bool(self.answer)


class Orders(Toy):
    def job_order(self, group: GroupState) -> int:
        return int(str(self.answer))

    def task_order(self, klass: PodClass) -> int:
        return int(str(self.answer))

    def queue_order(self, queue: QueueState, allocated: Sequence[int]) -> int:
        return int(str(self.answer))


class Over(Toy):
    def overused(self, queue: QueueState, allocated: Sequence[int]) -> bool:
        return bool(self.answer)

    def allocatable(self, queue: QueueState, allocated: Sequence[int], klass: PodClass) -> bool:
        return bool(self.answer)


class Votes(Toy):
    def job_enqueueable(self, group: GroupState) -> Vote:
        assert isinstance(self.answer, Vote)
        return self.answer

    def job_enqueued(self, group: GroupState) -> None:
        self.answer = "told"


def framework(*tiers: Sequence[Plugin]) -> Framework:
    return Framework([[Enabled(plugin) for plugin in tier] for tier in tiers])


def test_the_first_refusal_decides_on_validity() -> None:
    first, second = Refusal("First", "1"), Refusal("Second", "2")

    asked = framework([Valid("a", None), Valid("b", first)], [Valid("c", second)])

    assert asked.job_valid(GROUP) is first
    assert framework().job_valid(GROUP) is None


@pytest.mark.parametrize("answers", [[True, True], [True, False], [False, True], []])
def test_all_must_find_a_job_ready(answers: list[bool]) -> None:
    asked = framework([Ready(str(at), it) for at, it in enumerate(answers)])

    assert asked.job_ready(GROUP) is all(answers)


@pytest.mark.parametrize("answers", [[True, False], [False, False], []])
def test_any_may_call_a_queue_overused_and_all_must_let_it_take_more(
    answers: list[bool],
) -> None:
    asked = framework([Over(str(at), it) for at, it in enumerate(answers)])
    klass = PodClass("k", PodSpec(), ())

    assert asked.overused(QUEUE, []) is any(answers)
    assert asked.allocatable(QUEUE, [], klass) is all(answers)


def test_orders_are_compared_plugin_by_plugin() -> None:
    asked = framework([Orders("a", 1)], [Orders("b", -2)])
    klass = PodClass("k", PodSpec(), ())

    assert asked.job_order(GROUP) == (1, -2, EPOCH, "g")
    assert asked.task_order(klass) == (1, -2)
    assert asked.queue_order(QUEUE, [], []) == (1, -2, 0, 0, "q")


P, A, R = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        pytest.param([], True, id="silence permits"),
        pytest.param([[A], [A]], True, id="nobody minds"),
        pytest.param([[P], [R]], True, id="a permit ends the asking with its tier"),
        pytest.param([[P, R]], False, id="a rejection in the same tier decides"),
        pytest.param([[A], [R]], False, id="a later tier may reject"),
    ],
)
def test_votes_on_letting_a_job_in(tiers: list[list[Vote]], *, expected: bool) -> None:
    plugins = [[Votes(f"{tier}", vote) for vote in tier] for tier in tiers]

    assert framework(*plugins).job_enqueueable(GROUP) is expected


def test_all_are_told_that_a_job_was_let_in() -> None:
    plugins = [Votes("a", P), Votes("b", A)]

    framework(plugins).job_enqueued(GROUP)

    assert [plugin.answer for plugin in plugins] == ["told", "told"]


def test_a_rejected_job_does_not_hold_back_the_next() -> None:
    class OnlyOdd(Toy):
        def job_enqueueable(self, group: GroupState) -> Vote:
            return Vote.REJECT if group.group.name == "even" else Vote.PERMIT

    loaded = policy.load().framework
    plugins = [OnlyOdd("odd", None), *loaded.plugins]
    asked = Framework([[Enabled(plugin) for plugin in plugins]], loaded.actions)
    cluster = cluster_with(node("a", 9))
    for name in ("even", "odd"):
        add_gang(cluster, name, {"t": (1, {"cpu": 1})}, phase=PodGroupPhase.PENDING)

    decisions = decide(cluster, asked)

    assert list(placed(decisions)) == ["odd-t-0"]
    assert list(decisions.waiting) == ["even-uid"]


class OnePerZone(Toy):
    """At most one pod of a class in each zone: asked again after every pod."""

    scope = domain("zone")

    def __init__(self) -> None:
        super().__init__("one-per-zone", None)
        self.tracker = self
        self.rows: dict[int, int] = {}

    def filters(self) -> list[OnePerZone]:
        return [self]

    def concerns(self, klass: PodClass) -> bool:
        return True

    def copies(self, klass: PodClass, load: Load) -> Ints:
        nodes = load.nodes
        taken = {nodes.nodes[row].labels["zone"] for row in self.rows}  # type: ignore[union-attr]
        return np.array(
            [int(nodes.nodes[row].labels["zone"] not in taken) for row in load.rows],
            np.int64,
        )

    def reasons(self, klass: PodClass, load: Load) -> list[tuple[str, np.ndarray]]:
        return [("zone is taken", self.copies(klass, load) == 0)]

    def apply(self, klass: PodClass, row: int, copies: int) -> None:
        self.rows[row] = self.rows.get(row, 0) + copies

    def undo(self, klass: PodClass, row: int, copies: int) -> None:
        self.rows[row] -= copies
        if not self.rows[row]:
            del self.rows[row]

    def clear(self) -> None:
        self.rows.clear()


def test_what_depends_on_other_nodes_is_asked_after_every_pod() -> None:
    plugin = OnePerZone()
    loaded = policy.load().framework
    plugins: list[Plugin] = [*loaded.plugins, plugin]
    asked = Framework([[Enabled(each) for each in plugins]], loaded.actions)
    nodes = [node(f"n{at}", 9, labels={"zone": "ab"[at % 2]}) for at in range(4)]
    cluster = cluster_with(*nodes)
    add_gang(cluster, "three", {"t": (3, {"cpu": 1})})
    assert not decide(cluster, asked).binds
    assert plugin.rows == {}, "what was tried in vain was undone"

    add_gang(cluster, "two", {"t": (2, {"cpu": 1})})
    decisions = decide(cluster, asked)

    assert sorted(placed(decisions).values()) == ["n0", "n1"]
    assert "zone is taken" in decisions.waiting["three-uid"]
    for uid in placed(decisions):
        cluster.remove_pod(uid)
    assert plugin.rows == {}, "events move it as sessions do"


def test_trackers_are_told_of_what_was_placed_before_them() -> None:
    plugin = OnePerZone()
    cluster = cluster_with(node("a", 9, labels={"zone": "z"}))
    cluster.upsert_pod(Pod("p", "x", "p", node="a", ours=False))

    cluster.adopt(framework([plugin]))

    assert plugin.rows == {cluster.nodes.rows["a"]: 1}
    cluster.remove_node("a")
    assert plugin.rows == {}


def test_an_allocatable_vote_stops_a_queue_in_the_middle_of_a_run() -> None:
    class AtMost(Toy):
        def allocatable(
            self, queue: QueueState, allocated: Sequence[int], klass: PodClass
        ) -> bool:
            return allocated[0] + 1 <= 3

    loaded = policy.load().framework
    plugins: list[Plugin] = [*loaded.plugins, AtMost("at-most", None)]
    asked = Framework([[Enabled(each) for each in plugins]], loaded.actions)
    cluster = cluster_with(node("a", 9))
    add_gang(cluster, "g", {"t": (5, {"cpu": 1})}, minimum=1)
    add_gang(cluster, "whole", {"t": (2, {"cpu": 1})}, queue="default")

    decisions = decide(cluster, asked)

    assert sorted(placed(decisions)) == ["g-t-0", "whole-t-0", "whole-t-1"]


def test_a_queue_that_becomes_overused_gets_no_further_pod() -> None:
    class Enough(Toy):
        def overused(self, queue: QueueState, allocated: Sequence[int]) -> bool:
            return allocated[0] >= 2

    loaded = policy.load().framework
    plugins: list[Plugin] = [Enough("enough", None), *loaded.plugins]
    asked = Framework([[Enabled(each) for each in plugins]], loaded.actions)
    cluster = cluster_with(node("a", 9))
    add_gang(cluster, "g", {"t": (5, {"cpu": 1})}, minimum=0)

    assert len(decide(cluster, asked).binds) == 2


def test_jobs_whose_place_moves_with_each_pod_take_turns() -> None:
    class Fewest(Toy):
        order_moves = True

        def job_order(self, group: GroupState) -> int:
            return group.ready_members

    loaded = policy.load().framework
    plugins: list[Plugin] = [Fewest("fewest", None), *loaded.plugins]
    asked = Framework([[Enabled(each) for each in plugins]], loaded.actions)
    cluster = cluster_with(node("a", 4))
    for name in ("x", "y"):
        add_gang(cluster, name, {"t": (3, {"cpu": 1})}, minimum=0)

    assert list(placed(decide(cluster, asked))) == ["x-t-0", "y-t-0", "x-t-1", "y-t-1"]


def test_binpack_as_in_the_worked_example() -> None:
    """Node 4000m, 8 Gi, of which 1000m, 2 Gi are used; pod 1000m, 1 Gi: 479.17."""
    plugin = Binpack(Arguments({"binpack.weight": 10, "binpack.cpu": 5}))
    gi = 1 << 30
    cluster = cluster_with(node("a", 4000, memory=8 * gi))
    used = PodSpec.of({"cpu": 1000, "memory": 2 * gi})
    cluster.upsert_pod(Pod("u", "x", "u", used, node="a", ours=False))
    cluster.upsert_pod(Pod("p", "x", "p", PodSpec.of({"cpu": 1000, "memory": gi})))
    load = Load(cluster.nodes, cluster.nodes.in_order)

    [score] = plugin.score(cluster.pods["p"].klass, load)

    assert score / SCORE_UNIT == pytest.approx(479.17, abs=0.01)


@given(st.integers(0, 50), st.integers(0, 50))
def test_the_last_that_holds_is_found(limit: int, at_most: int) -> None:
    assert last_true(lambda it: it <= limit, 0, at_most) == min(limit, at_most)


def test_the_share_is_the_largest_part_of_any_resource() -> None:
    assert share([1, 0, 3], [2, 0, 4]) == 3 * (1 << 20) // 4
    assert share([], []) == 0


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_sets_of_demands_add_as_vectors_do(seed: int) -> None:
    random = Random(seed)
    sides = [random.randint(1, 3) for _ in range(random.randint(1, 3))]
    box = Box(sides)
    numbers = random.sample(range(box.size), random.randint(1, box.size))
    add = random.randrange(box.size)
    mask = np.zeros(box.size, np.bool_)
    mask[numbers] = True

    moved = (as_bits(mask) & box.fits_beside(add)) << add

    sums = box.vectors[numbers] + box.vectors[add]
    inside = sums[(sums <= sides).all(axis=1)]
    expected = {int((vector * box.strides).sum()) for vector in inside}
    assert {number for number in range(2 * box.size) if moved >> number & 1} == expected


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_what_a_node_still_takes_is_what_it_took_less_what_is_on_it(seed: int) -> None:
    random = Random(seed)
    box = Box([random.randint(1, 3) for _ in range(random.randint(1, 3))])
    taken = {number for number in range(box.size) if random.random() < 0.6}
    cover = Cover(box, {7: sum(1 << number for number in taken)}, None)
    placed = np.zeros(len(box.sides), np.int64)
    for at in random.choices(range(len(box.sides)), k=random.randint(0, 4)):
        if placed[at] < box.sides[at]:
            placed[at] += 1
            cover.put(7, at)

    left = {number for number in range(box.size) if cover.takes(7) >> number & 1}

    sums = {number: box.vectors[number] + placed for number in range(box.size)}
    assert left == {
        number
        for number, vector in sums.items()
        if (vector <= box.sides).all() and int((vector * box.strides).sum()) in taken
    }


def test_the_queue_order_never_falls_as_a_queue_is_used() -> None:
    asked = framework()
    queue = QueueState("q")
    queue.queue = Queue("q", priority=3)
    orders = [asked.queue_order(queue, [use, 5], [7, 9]) for use in range(12)]

    assert all(one <= other for one, other in pairwise(orders))
    lower = replace(queue.queue, priority=2)
    queue.queue = lower
    assert asked.queue_order(queue, [0, 0], [7, 9]) > orders[-1]

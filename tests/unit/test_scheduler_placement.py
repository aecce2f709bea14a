"""Many pods placed at once go exactly where they would have gone one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import numpy as np
from hypothesis import given, settings, strategies as st

from services.scheduler.core.classes import PodClass
from services.scheduler.core.cluster import Cluster
from services.scheduler.core.fixed_point import SCORE_UNIT, fraction
from services.scheduler.core.groups import Hold
from services.scheduler.core.load import Load
from services.scheduler.core.nodes import LARGEST, Ints, Mask
from services.scheduler.core.objects import Node, Pod, PodSpec
from services.scheduler.core.placement import Placer
from services.scheduler.core.scopes import GLOBAL, RELATIVE, ROW, STATIC, Scope
from services.scheduler.core.transaction import Transaction
from services.scheduler.framework import Enabled, Framework, Plugin

SEEDS = st.integers(0, 2**32)


class Bumpy:
    """A score that rises and falls as a node fills, with many ties."""

    def __init__(self, random: Random, scope: Scope | None) -> None:
        self.name = "bumpy"
        self._factor = random.choice([0, 1, 3, 7, 11])
        self._shift = random.randint(0, 5)
        self._levels = random.choice([1, 2, 3, 5, 30])
        if scope is not None:
            self.scope = scope

    def scorers(self) -> list[Bumpy]:
        return [self]

    def concerns(self, klass: PodClass) -> bool:
        return True

    def score(self, klass: PodClass, load: Load) -> Ints:
        mixed = load.used(0) * self._factor + load.allocatable(0) * self._shift
        score: Ints = mixed % self._levels * SCORE_UNIT
        return score


class Preference:
    """A score by what a node's object says."""

    name = "preference"
    scope = STATIC

    def scorers(self) -> list[Preference]:
        return [self]

    def concerns(self, klass: PodClass) -> bool:
        return True

    def score(self, klass: PodClass, load: Load) -> Ints:
        return (load.rows % 3 * SCORE_UNIT).astype(np.int64)


class Wish:
    """A score measured against the nodes that take a pod now."""

    name = "wish"
    scope = RELATIVE

    def __init__(self, random: Random) -> None:
        self._kinds = random.randint(1, 4)

    def scorers(self) -> list[Wish]:
        return [self]

    def concerns(self, klass: PodClass) -> bool:
        return True

    def score(self, klass: PodClass, load: Load) -> Ints:
        return (load.rows % self._kinds * 3).astype(np.int64)

    def measured(self, raw: Ints, most: int) -> Ints:
        return raw * 10 // max(most, 1) * SCORE_UNIT


class Cards:
    """Two cards on each node, each for one pod; state of the plugin's own."""

    name = "cards"
    scope = ROW

    def __init__(self) -> None:
        self.tracker = self
        self.taken: dict[int, int] = {}

    def filters(self) -> list[Cards]:
        return [self]

    def concerns(self, klass: PodClass) -> bool:
        return bool(klass.spec.features)

    def copies(self, klass: PodClass, load: Load) -> Ints:
        return np.array([2 - self.taken.get(int(row), 0) for row in load.rows], np.int64)

    def reasons(self, klass: PodClass, load: Load) -> Iterable[tuple[str, Mask]]:
        yield "no card", self.copies(klass, load) <= 0

    provides = ("cards",)

    def apply(self, klass: PodClass, row: int, copies: int) -> None:
        if klass.spec.features:
            self.taken[row] = self.taken.get(row, 0) + copies

    def undo(self, klass: PodClass, row: int, copies: int) -> None:
        if klass.spec.features:
            self.taken[row] -= copies
            if not self.taken[row]:
                del self.taken[row]

    def clear(self) -> None:
        self.taken.clear()


def random_cluster(random: Random, framework: Framework) -> tuple[Cluster, list[PodClass]]:
    cluster = Cluster()
    cluster.adopt(framework)
    nodes = random.choice([1, 2, 3, 5, 8, 40])
    for at in random.sample(range(nodes), nodes):
        amounts = {"cpu": random.randint(1, 12), "memory": random.randint(4, 20), "pods": 10}
        cluster.upsert_node(Node(f"n{at:02d}", amounts))
    classes = []
    for at in range(3):
        spec = PodSpec.of({"cpu": random.randint(1, 3), "memory": random.randint(0, 2)})
        if at == 2:
            spec = PodSpec.of({"cpu": 1}, features=("cards",))
        cluster.upsert_pod(Pod(f"p{at}", "ns", f"p{at}", spec))
        classes.append(cluster.pods[f"p{at}"].klass)
    return cluster, classes


def placer_over(cluster: Cluster, framework: Framework) -> Placer:
    transaction = Transaction(cluster.occupancy)
    return Placer(cluster.nodes, cluster.classes, framework, transaction)


def in_portions(seed: int, scope: Scope | None, portions: Sequence[int]) -> list[list[str]]:
    random = Random(seed)
    plugins: list[Plugin] = [Bumpy(random, scope), Preference(), Wish(random), Cards()]
    framework = Framework([[Enabled(plugin) for plugin in plugins]])
    cluster, classes = random_cluster(random, framework)
    placer = placer_over(cluster, framework)
    placed: list[list[str]] = []
    for klass in classes:
        rows = []
        for portion in portions:
            rows += placer.place(klass, portion)
        placed.append([cluster.nodes.name(row) for row in rows])
    return placed


@given(seed=SEEDS, portion=st.integers(1, 30))
@settings(max_examples=120, deadline=None)
def test_at_once_in_portions_and_one_by_one_are_the_same(seed: int, portion: int) -> None:
    singly = in_portions(seed, ROW, [1] * (3 * portion))

    assert in_portions(seed, ROW, [3 * portion]) == singly
    assert in_portions(seed, ROW, [portion] * 3) == singly
    slowly = GLOBAL if seed % 2 else None  # no scope is as good as scope global
    assert in_portions(seed, slowly, [3 * portion]) == singly


@given(seed=SEEDS)
@settings(max_examples=100, deadline=None)
def test_undo_restores_everything_and_keeps_what_came_before(seed: int) -> None:
    random = Random(seed)
    cards = Cards()
    framework = Framework(
        [[Enabled(Bumpy(random, ROW)), Enabled(Wish(random)), Enabled(cards)]]
    )
    cluster, classes = random_cluster(random, framework)
    nodes = cluster.nodes
    cluster.occupancy.hold("held", Hold(next(iter(nodes.rows)), classes[0]))
    placer = placer_over(cluster, framework)
    placer.place(random.choice(classes), random.randint(0, 5))
    for klass in classes:
        placer.candidates(klass)
    before = (nodes.used.copy(), nodes.pipelined.copy(), dict(cards.taken))
    views = [(c.copies.copy(), c.scores.copy()) for c in map(placer.candidates, classes)]

    mark = placer.transaction.mark()
    if random.random() < 0.5:
        placer.transaction.lift([Hold(next(iter(nodes.rows)), classes[0])])
    for _ in range(3):
        placer.place(random.choice(classes), random.randint(1, 20))
    placer.transaction.undo(mark)

    assert (nodes.used == before[0]).all()
    assert (nodes.pipelined == before[1]).all()
    assert cards.taken == before[2]
    for klass, (copies, scores) in zip(classes, views, strict=True):
        assert (placer.candidates(klass).copies == copies).all()
        assert (placer.candidates(klass).scores == scores).all()


@given(
    pairs=st.lists(
        st.tuples(st.integers(0, LARGEST), st.integers(0, LARGEST)), min_size=1, max_size=30
    )
)
@settings(max_examples=100, deadline=None)
def test_numbers_and_arrays_have_the_same_digits(pairs: list[tuple[int, int]]) -> None:
    part = np.array([min(pair) for pair in pairs], np.int64)
    whole = np.array([max(pair) for pair in pairs], np.int64)

    together = fraction(part, whole).tolist()

    assert together == [fraction(min(pair), max(pair)) for pair in pairs]
    assert all(0 <= each <= SCORE_UNIT for each in together)


@given(seed=SEEDS)
@settings(max_examples=50, deadline=None)
def test_what_is_known_of_a_class_keeps_up_with_events(seed: int) -> None:
    random = Random(seed)
    framework = Framework(
        [[Enabled(Bumpy(random, ROW)), Enabled(Preference()), Enabled(Wish(random))]]
    )
    cluster, classes = random_cluster(random, framework)
    placer = placer_over(cluster, framework)
    for step in range(12):
        match random.randint(0, 4):
            case 0:
                name = f"n{random.randint(0, 9):02d}"
                cluster.upsert_node(Node(name, {"cpu": random.randint(1, 9), "pods": 9}))
            case 1:
                cluster.remove_node(f"n{random.randint(1, 9):02d}")
            case 2:
                placer.place(random.choice(classes), random.randint(1, 9))
            case 3:
                node = f"n{random.randint(0, 9):02d}"
                spec = PodSpec.of({"cpu": 2})
                uid = f"other{step}"
                cluster.upsert_pod(Pod(uid, "ns", uid, spec, node=node, ours=False))
            case _:
                for name in random.choices(sorted(cluster.nodes.rows), k=200):
                    cluster.nodes.touch(cluster.nodes.rows[name])
                placer.place(random.choice(classes), random.randint(1, 9))
                cluster.nodes.trim_journal()
                assert not cluster.nodes.journal
        klass = random.choice(classes)
        known = placer.candidates(klass)
        klass.cache = None
        anew = placer.candidates(klass)

        assert (known.rows == anew.rows).all()
        assert (known.copies == anew.copies).all()
        assert (known.scores == anew.scores).all()

"""Prefers nodes as Kubernetes' own scheduler does: a weighed sum, each part from 0 to 100."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from hekla.domain.resources import CPU, MEMORY
from services.scheduler.arguments import Arguments
from services.scheduler.core.classes import PodClass
from services.scheduler.core.fixed_point import SCORE_UNIT, fraction
from services.scheduler.core.load import Load
from services.scheduler.core.nodes import CPU_COLUMN, MEMORY_COLUMN, Ints
from services.scheduler.core.scopes import RELATIVE, ROW
from services.scheduler.framework import Scorer
from services.scheduler.plugins.predicates import tolerated

GPU: Final = "nvidia.com/gpu"
UNASKED: Final = {CPU_COLUMN: 100, MEMORY_COLUMN: 200 << 20}
"""What a pod counts as taking, by column, where it does not ask: 100m and 200 MiB."""
_BEST: Final = 100
_HEAVIEST: Final = 1_000_000
_DEFAULTS: Final = {
    "nodeaffinity": 2,
    "podaffinity": 2,
    "leastrequested": 1,
    "mostrequested": 0,
    "balancedresource": 1,
    "tainttoleration": 3,
    "imagelocality": 1,
    "podtopologyspread": 2,
}
_NOT_BUILT: Final = ("podaffinity", "imagelocality", "podtopologyspread")


class NodeOrder:
    """Scores by load, balance, preferred node affinity and preferred absence of taints."""

    name = "nodeorder"
    reads = ("node_preferences", "tolerations")

    def __init__(self, arguments: Arguments) -> None:
        weights = {
            part: arguments.weight(f"{part}.weight", default, most=_HEAVIEST)
            for part, default in _DEFAULTS.items()
        }
        self.weights = weights
        """By part; a part of weight 0 is not asked."""
        self.tracker = Unasked()
        self.not_built = tuple(part for part in _NOT_BUILT if weights[part])
        """Parts that would count but do not exist."""

    def scorers(self) -> list[Scorer]:
        """Those that count."""
        parts: dict[str, Callable[[int], Scorer]] = {
            "nodeaffinity": NodeAffinity,
            "leastrequested": lambda weight: Requested(weight, self.tracker, _least),
            "mostrequested": lambda weight: Requested(weight, self.tracker, _most),
            "balancedresource": Balanced,
            "tainttoleration": TaintToleration,
        }
        return [make(self.weights[part]) for part, make in parts.items() if self.weights[part]]


class Unasked:
    """On each node, what pods that ask for no cores or no memory count as taking."""

    def __init__(self) -> None:
        self._amounts = {column: np.zeros(0, np.int64) for column in UNASKED}

    def concerns(self, klass: PodClass) -> bool:
        """Whether pods of the class leave something unasked."""
        return any(unasked(klass).values())

    def apply(self, klass: PodClass, row: int, copies: int) -> None:
        """Pods came."""
        by_column = unasked(klass)
        for column, amounts in self._amounts.items():
            more = by_column[column] * copies
            if more and row >= len(amounts):
                self._amounts[column] = np.concatenate([amounts, np.zeros(row + 16, np.int64)])
            if more:
                self._amounts[column][row] += more

    def undo(self, klass: PodClass, row: int, copies: int) -> None:
        """Pods left."""
        self.apply(klass, row, -copies)

    def clear(self) -> None:
        """No node has any pod."""
        self._amounts = {column: np.zeros(0, np.int64) for column in UNASKED}

    def of(self, load: Load, column: int, a_pod: int) -> Ints | int:
        """What it comes to, each pod that is added in a case counting as ``a_pod`` more."""
        known = self._amounts[column]
        if not (a_pod or len(known)):
            return 0
        amounts: Ints = np.zeros(len(load.rows), np.int64)
        within = load.rows < len(known)
        amounts[within] = known[load.rows[within]]
        return load.with_more(amounts, a_pod)


def unasked(klass: PodClass) -> dict[int, int]:
    """What a pod of the class counts as taking without having asked, by column."""
    asked = dict(klass.columns)
    return {column: 0 if column in asked else amount for column, amount in UNASKED.items()}


class Requested:
    """Scores by the mean of how much of cores and memory would be requested."""

    scope = ROW

    def __init__(
        self, weight: int, tracker: Unasked, rate: Callable[[Ints, Ints], Ints]
    ) -> None:
        self._weight = weight
        self._tracker = tracker
        self._rate = rate

    def concerns(self, klass: PodClass) -> bool:
        """Every class counts as taking something."""
        del klass
        return True

    def score(self, klass: PodClass, load: Load) -> Ints:
        """The mean over the resources that the node has; 0 where it has none."""
        wanted = dict(klass.columns)
        rates: Ints = np.zeros(1, np.int64)
        kinds: Ints = np.zeros(1, np.int64)
        for column, amount in unasked(klass).items():
            have = load.allocatable(column)
            pod = wanted.get(column, amount)
            requested = load.used(column) + self._tracker.of(load, column, amount) + pod
            has = have > 0
            rates = rates + self._rate(requested, have) * has
            kinds = kinds + has
        score: Ints = rates // np.maximum(kinds, 1) * (self._weight * SCORE_UNIT)
        return score


def _least(requested: Ints, have: Ints) -> Ints:
    rate: Ints = np.maximum(have - requested, 0) * _BEST // np.maximum(have, 1)
    return rate


def _most(requested: Ints, have: Ints) -> Ints:
    rate: Ints = np.minimum(requested, have) * _BEST // np.maximum(have, 1)
    return rate


class Balanced:
    """Prefers nodes whose resources would be used to like parts."""

    scope = ROW

    def __init__(self, weight: int) -> None:
        self._weight = weight

    def concerns(self, klass: PodClass) -> bool:
        """Whether the class asks for one of the resources."""
        return any(name in {CPU, MEMORY, GPU} for name, _ in klass.spec.request)

    def score(self, klass: PodClass, load: Load) -> Ints:
        """100 less the standard deviation of the parts in use, in percent.

        Cards count for pods that ask for some; what a node has none of does not count.
        """
        columns = [CPU_COLUMN, MEMORY_COLUMN]
        wanted = dict(klass.columns)
        card = load.nodes.columns.get(GPU)
        if card in wanted:
            columns.append(card)
        kinds: Ints = np.zeros(1, np.int64)
        total: Ints = np.zeros(1, np.int64)
        squares: Ints = np.zeros(1, np.int64)
        for column in columns:
            have = load.allocatable(column)
            part = fraction(load.used(column) + wanted.get(column, 0), have)
            has = have > 0
            part = part * has
            kinds = kinds + has
            total = total + part
            squares = squares + part * part
        whole = np.maximum(kinds, 1) * SCORE_UNIT
        # Below 2^52 the root of a double, rounded down, is the integer's.
        deviation = np.sqrt(kinds * squares - total * total).astype(np.int64)
        score: Ints = (whole - deviation) * _BEST // whole * (self._weight * SCORE_UNIT)
        return score


class NodeAffinity:
    """Prefers nodes that match more of the pod's preferred terms."""

    scope = RELATIVE

    def __init__(self, weight: int) -> None:
        self._weight = weight

    def concerns(self, klass: PodClass) -> bool:
        """Whether the class prefers any."""
        return bool(klass.spec.node_preferences)

    def score(self, klass: PodClass, load: Load) -> Ints:
        """The sum of the weights of terms that match."""
        raw: Ints = np.zeros(len(load.rows), np.int64)
        for weight, term in klass.spec.node_preferences:
            raw += weight * load.nodes.matching(term)[load.rows]
        return raw

    def measured(self, raw: Ints, most: int) -> Ints:
        """In percent of the best; those that take no pod have no say, so may be above it."""
        return raw * _BEST // max(most, 1) * (self._weight * SCORE_UNIT)


class TaintToleration:
    """Prefers nodes without taints that ask pods to stay away and that the pod minds."""

    scope = RELATIVE

    def __init__(self, weight: int) -> None:
        self._weight = weight

    def concerns(self, klass: PodClass) -> bool:
        """Any class may mind."""
        del klass
        return True

    def score(self, klass: PodClass, load: Load) -> Ints:
        """How many such taints a node has."""
        nodes = load.nodes
        minded: Ints = np.zeros(len(nodes.nodes), np.int64)
        for taints, rows in nodes.tainted().items():
            minded[rows] = sum(
                taint.effect == "PreferNoSchedule"
                and not tolerated(taint, klass.spec.tolerations)
                for taint in taints
            )
        return minded[load.rows]

    def measured(self, raw: Ints, most: int) -> Ints:
        """100 less the percentage of the worst."""
        return (_BEST - raw * _BEST // max(most, 1)) * (self._weight * SCORE_UNIT)

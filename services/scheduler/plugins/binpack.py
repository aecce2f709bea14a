"""Fills nodes one after the other: the fuller a node would be, the better."""

from __future__ import annotations

from typing import Final

import numpy as np

from services.scheduler.arguments import Arguments
from services.scheduler.core.classes import PodClass
from services.scheduler.core.fixed_point import fraction
from services.scheduler.core.load import Load
from services.scheduler.core.nodes import Ints, Mask
from services.scheduler.core.scopes import ROW

_PERCENT: Final = 100
_HEAVIEST: Final = 1_000_000


class Binpack:
    """Scores by the weighed mean of how full each requested resource would be."""

    name = "binpack"
    scope = ROW

    def __init__(self, arguments: Arguments) -> None:
        self.weight = arguments.weight("binpack.weight", 1, most=_HEAVIEST)
        self.weights = {
            "cpu": arguments.weight("binpack.cpu", 1, most=_HEAVIEST),
            "memory": arguments.weight("binpack.memory", 1, most=_HEAVIEST),
        }
        """By resource; what is not named does not count."""
        for name in arguments.names("binpack.resources"):
            self.weights[name] = arguments.weight(
                f"binpack.resources.{name}", 1, most=_HEAVIEST
            )

    def scorers(self) -> list[Binpack]:
        """Itself, unless its weight is zero."""
        return [self] if self.weight else []

    def concerns(self, klass: PodClass) -> bool:
        """Whether the class requests something that counts."""
        return any(self.weights.get(name) for name, _ in klass.spec.request)

    def score(self, klass: PodClass, load: Load) -> Ints:
        """From 0 to 100, times the weight; 0 for a node that would be over-full."""
        columns = load.nodes.columns
        amounts = dict(klass.columns)
        weighed = [
            (columns[name], self.weights[name])
            for name, _ in klass.spec.request
            if name in self.weights and name in columns
        ]
        full: Ints = np.zeros(1, np.int64)
        fits: Mask = np.ones(1, np.bool_)
        for column, weight in weighed:
            used, have = load.used(column), load.allocatable(column)
            would_be = used + amounts[column]
            full = full + weight * fraction(would_be, have)
            fits = fits & (would_be <= have)
        weights = sum(weight for _, weight in weighed)
        score: Ints = full // max(weights, 1) * (_PERCENT * self.weight) * fits
        return score

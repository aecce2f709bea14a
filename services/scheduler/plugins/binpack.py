"""Fills nodes one after the other: the fuller a node would be, the better."""

from __future__ import annotations

from typing import Final

import numpy as np

from services.scheduler.arguments import Arguments
from services.scheduler.core.classes import PodClass
from services.scheduler.core.fixed_point import fraction
from services.scheduler.core.load import Load
from services.scheduler.core.nodes import Ints
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
        """From 0 to 100, times the weight.

        A node that would be over-full would score 0, but takes no pod, so is never asked.
        """
        columns = load.nodes.columns
        amounts = dict(klass.columns)
        full: Ints = np.zeros(1, np.int64)
        weights = 0
        for name, _ in klass.spec.request:
            weight, column = self.weights.get(name), columns.get(name)
            if weight is not None and column is not None:
                would_be = load.used(column) + amounts[column]
                full = full + weight * fraction(would_be, load.allocatable(column))
                weights += weight
        return full // max(weights, 1) * (_PERCENT * self.weight)

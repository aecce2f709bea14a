"""The one filter that is always there: a node never gets more than it has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from services.scheduler.core.classes import PodClass
from services.scheduler.core.load import Load
from services.scheduler.core.nodes import PODS_COLUMN, Ints, Mask
from services.scheduler.core.scopes import ROW

POD_NUMBER_EXCEEDED = "node(s) pod number exceeded"


class ResourceFit:
    """Every requested resource, the number of pods included, fits what is left."""

    scope = ROW

    def concerns(self, klass: PodClass) -> bool:
        """Every class takes at least a pod's place."""
        del klass
        return True

    def copies(self, klass: PodClass, load: Load) -> Ints:
        """How often the request goes into what is left."""
        least: Ints | None = None
        for column, amount in klass.columns:
            times = load.room(column) // amount
            least = times if least is None else np.minimum(least, times)
        assert least is not None, "every class takes a pod's place"
        return np.maximum(least, 0)

    def reasons(self, klass: PodClass, load: Load) -> Iterator[tuple[str, Mask]]:
        """Each resource of which too little is left."""
        for name, column in load.nodes.columns.items():
            for wanted, amount in klass.columns:
                if wanted == column:
                    yield _text(name, column), load.room(column) < amount
        for name in klass.missing:
            yield _text(name, -1), np.ones(len(load.rows), np.bool_)


def _text(name: str, column: int) -> str:
    return POD_NUMBER_EXCEEDED if column == PODS_COLUMN else f"Insufficient {name}"

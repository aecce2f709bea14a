"""Why pods find no node, in words and counts of nodes, in the shape Volcano gives it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from hekla.domain.resources import format_amount
from services.scheduler.core.classes import PodClass
from services.scheduler.core.load import Load
from services.scheduler.core.nodes import NodeTable
from services.scheduler.core.placement import Parts
from services.scheduler.framework import Framework


class Explainer:
    """Says what speaks against each node, once for each class and state of the nodes."""

    def __init__(self, nodes: NodeTable, framework: Framework) -> None:
        self._nodes = nodes
        self._framework = framework
        self._said: dict[PodClass, tuple[tuple[int, int], str]] = {}

    def nodes_for(self, klass: PodClass) -> str:
        """Why nodes take no pod of the class: ``0/3 nodes are unavailable: 3 …``."""
        nodes = self._nodes
        version = (nodes.epoch, nodes.journal_start + len(nodes.journal))
        said = self._said.get(klass)
        if said is None or said[0] != version:
            said = self._said[klass] = (version, self._look(klass))
        return said[1]

    def _look(self, klass: PodClass) -> str:
        nodes = self._nodes
        left = nodes.in_order
        total = len(left)
        counts: Counter[str] = Counter()
        parts = Parts.of(self._framework, klass)
        for each in (*parts.static_filters, *parts.row_filters, *parts.other_filters):
            load = Load(nodes, left)
            against = np.zeros(len(left), np.bool_)
            for reason, mask in each.reasons(klass, load):
                counts[reason] += int(mask.sum())
                against |= mask
            left = left[~against]
        reasons = ", ".join(
            sorted(f"{count} {text}" for text, count in counts.items() if count)
        )
        against_them = f": {reasons}." if reasons else "."
        if len(left):
            return f"{len(left)}/{total} nodes are available{against_them}"
        return " ".join(
            [f"0/{total} nodes are unavailable{against_them}", *self._too_large(klass)]
        )

    def _too_large(self, klass: PodClass) -> list[str]:
        """What is asked of one node and no node has, even when it is empty."""
        nodes = self._nodes
        rows = nodes.in_order
        wanted = dict(klass.spec.request)
        texts = []
        for name, column in nodes.columns.items():
            if name in wanted and len(rows):
                largest = int(nodes.allocatable[rows, column].max())
                if largest < wanted[name]:
                    asked, most = (format_amount(name, it) for it in (wanted[name], largest))
                    texts.append(f"No node has {asked} {name} (largest: {most}).")
        texts += [f"No node has any {name}." for name in klass.missing]
        return texts

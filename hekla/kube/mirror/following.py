"""Kinds whose source is the custom resource wherever there may be one. Pure.

As ``deciding.decide``, but a row that was there before is given a custom resource, or takes the
one of its name, and follows it from then on; and a row that goes waits until its custom
resource is gone, or that would be taken for a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.deciding import Adopt, Create, Gone, Row, Rules, Source, Step, decide


def follow(custom: Custom | None, row: Row | None, rules: Rules) -> Sequence[Step]:
    """The steps that bring both sides together, in order."""
    if custom is not None and custom.mark:
        # It was made from a row once; no matter, since rows follow.
        custom = replace(custom, mark="")
    if row is None:
        return decide(custom, row, rules)
    if row.source is Source.ROW:
        return _tie(custom, row)
    if custom is None and row.deleting and row.custom_uid:
        return [Gone(row)]
    return decide(custom, row, rules)


def _tie(custom: Custom | None, row: Row) -> Sequence[Step]:
    """The steps for a row that is the source, and shall not be."""
    if row.deleting:
        return []
    if custom is None:
        return [Create(row)] if row.wanted else []
    return [] if custom.deleting else [Adopt(custom, row)]

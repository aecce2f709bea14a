"""Kinds whose source is the custom resource wherever there may be one. Pure.

As ``deciding.decide``, but a row that was there before is given a custom resource, or takes the
one of its name, and follows it from then on; and a row that goes waits until its custom
resource is gone, or that would be taken for a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.deciding import (
    Adopt,
    Create,
    Delete,
    Gone,
    Insert,
    Row,
    Rules,
    Source,
    Step,
    decide,
)


def follow(custom: Custom | None, row: Row | None, rules: Rules) -> Sequence[Step]:
    """The steps that bring both sides together, in order."""
    if row is None:
        return [] if custom is None or custom.deleting else [Insert(custom)]
    if row.source is Source.ROW:
        return _tie(custom, row)
    if custom is None and row.deleting and row.custom_uid:
        return [Gone(row)]
    if custom is not None and custom.mark:
        # It was made from a row once; no matter, since rows follow.
        custom = replace(custom, mark="")
    return decide(custom, row, rules)


def _tie(custom: Custom | None, row: Row) -> Sequence[Step]:
    """The steps for a row that is the source, and shall not be."""
    if custom is None:
        return [Create(row)] if row.wanted and not row.deleting else []
    if custom.deleting:
        return []
    if row.deleting:
        return [Delete(custom)] if custom.mark == row.uid else []
    return [Adopt(custom, row)]

"""All rules there are, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hekla.api import bounds
from hekla.api.decode import KINDS
from hekla.domain.errors import Violation
from services.webhook.rules import (
    cron_job,
    hyper_node,
    job_flow,
    job_template,
    job_update,
    pod,
    pod_group,
    queue,
    queue_advice,
    queue_tree,
    whole_job,
)
from services.webhook.rules.registry import WRITES, Case, Rule


def _bounds(case: Case[Any]) -> Iterator[Violation]:
    yield from bounds.violations(case.object)


RULES: Final = (
    Rule(
        name="definition",
        kinds=tuple(kind for _, kind in KINDS),
        operations=WRITES,
        check=_bounds,
        path="*",
        says="Every field is within the bounds of its definition (see below).",
        example="maxRetry: -1",
    ),
    *whole_job.RULES,
    *job_update.RULES,
    *cron_job.RULES,
    *job_template.RULES,
    *job_flow.RULES,
    *queue.RULES,
    *queue_tree.RULES,
    *queue_advice.RULES,
    *pod_group.RULES,
    *hyper_node.RULES,
    *pod.RULES,
)

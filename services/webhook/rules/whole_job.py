"""All rules for new jobs, to ask them of a job that is inside another object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hekla.api.job import Job
from hekla.domain.errors import Violation
from services.webhook.rules import (
    defaults,
    dependencies,
    job,
    job_advice,
    job_parts,
    policies,
)
from services.webhook.rules.registry import Case, Operation, asked

RULES: Final = (
    *job.RULES,
    *policies.RULES,
    *dependencies.RULES,
    *job_parts.RULES,
    *job_advice.RULES,
)


def violations(made: Job, case: Case[Any]) -> Iterator[Violation]:
    """All that is wrong with a job that would be made; ``case`` is of what it is in."""
    return _found(made, case, warns=False)


def warnings(made: Job, case: Case[Any]) -> Iterator[Violation]:
    """What it would be warned of."""
    return _found(made, case, warns=True)


def _found(made: Job, case: Case[Any], *, warns: bool) -> Iterator[Violation]:
    filled = defaults.created_job(made, case.limits)
    inner = Case(Operation.CREATE, filled, None, case.world, case.limits)
    rules = [rule for rule in RULES if rule.warns is warns]
    for _, violation in asked(rules, "Job", inner):
        yield violation

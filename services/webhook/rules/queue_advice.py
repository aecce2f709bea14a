"""What is legal in a queue but has no effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hekla.api.queue import Queue
from hekla.domain.errors import Violation
from services.webhook.rules import unbuilt
from services.webhook.rules.queue import QUEUE
from services.webhook.rules.registry import WRITES, Case, Rule


def _unbuilt(case: Case[Queue]) -> Iterator[Violation]:
    for text in unbuilt.in_queue(case.object):
        yield Violation("", text)


RULES: Final = (
    Rule(
        name="queue-advice.unbuilt",
        kinds=QUEUE,
        operations=WRITES,
        check=_unbuilt,
        path="spec",
        says="What is not built yet is named.",
        example="weight: 2",
        warns=True,
    ),
)

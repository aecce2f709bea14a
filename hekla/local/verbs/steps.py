"""Writes in steps: the moments at which somebody else is asked before a write goes on.

A write is a generator. It yields a ``Step`` when admission may have its say, takes what comes
back as its new value, and returns what it wrote. So the verbs stay plain code that runs at
once, and only who drives them knows whether anybody is asked: ``carry_out``, or ``at_once``.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, NamedTuple, Protocol, TypeVar

from hekla.local.kinds.registry import Kind, Object
from hekla.local.storage.memory import Entry

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"

T = TypeVar("T")


class Step(NamedTuple):
    """One moment of a write."""

    mutating: bool
    """Whether the answer may differ from ``value``; else it is only allowed or refused."""
    operation: str
    kind: Kind
    namespace: str
    name: str
    """Empty for a create whose name is generated later."""
    subresource: str
    value: Object | None
    """The object as it would be written; None for a delete."""
    old: Entry | None
    """The object as it is; None for a create."""
    dry_run: bool


Writing = Generator[Step, Object | None, T]


class Review(Protocol):
    """Who is asked during the writes of one request."""

    def concerns(self, step: Step) -> bool:
        """Whether anybody must be asked; most often nobody, so this must be quick."""

    async def review(self, step: Step) -> Object | None:
        """The step's value, changed or not. A changed one is a copy.

        Raises:
            ApiError: it is refused.
        """


def at_once(writing: Writing[T]) -> T:
    """Carry out a write and ask nobody."""
    try:
        step = next(writing)
        while True:
            step = writing.send(step.value)
    except StopIteration as end:
        written: T = end.value
        return written


async def carry_out(writing: Writing[T], review: Review) -> T:
    """Carry out a write and ask at each step. Others may write while somebody thinks.

    Raises:
        ApiError: it was refused, by a rule or by who was asked.
    """
    try:
        step = next(writing)
        while True:
            if review.concerns(step):
                step = writing.send(await review.review(step))
            else:
                step = writing.send(step.value)
    except StopIteration as end:
        written: T = end.value
        return written
    finally:
        writing.close()

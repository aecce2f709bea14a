"""What a rule is: a name, what it is for, and a function that says what is wrong.

Every module of rules lists its own in ``RULES``; ``rulebook.RULES`` is all of them, in the
order in which they are asked. Nothing but a rule refuses anything, so the list can be
printed (``docs/admission.md``), and each rule can be turned off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from hekla.domain.errors import Violation
from services.webhook.rules.world import Limits, World

Kind = TypeVar("Kind")


class Operation(StrEnum):
    """What is to be done with the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


CREATION: Final = frozenset({Operation.CREATE})
UPDATES: Final = frozenset({Operation.UPDATE})
WRITES: Final = frozenset({Operation.CREATE, Operation.UPDATE})
DELETION: Final = frozenset({Operation.DELETE})


@dataclass(frozen=True, slots=True)
class Case(Generic[Kind]):
    """One judgement to make, with the object's defaults filled in."""

    operation: Operation
    object: Kind
    old: Kind | None
    """What it replaces, if it is an update."""
    world: World
    limits: Limits

    def before(self) -> Case[Kind]:
        """The same judgement of what is replaced, as if it replaced itself."""
        assert self.old is not None
        return Case(self.operation, self.old, self.old, self.world, self.limits)


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that must hold, or that people should be told of if it does not."""

    name: str
    kinds: tuple[str, ...]
    operations: frozenset[Operation]
    check: Callable[[Any], Iterable[Violation]]
    """Given the ``Case``: what is wrong."""
    path: str
    """Where, for the documentation: ``spec.tasks[].name``."""
    says: str
    """What must hold."""
    example: str
    """What breaks it, in a few words of YAML."""
    beyond: bool = False
    """Volcano has no such rule: an update is refused only for what it makes worse."""
    warns: bool = False
    """It only tells; nothing is refused."""

    def found(self, case: Case[Any]) -> Iterator[Violation]:
        """What is wrong, under this rule's name unless it is another's that it asks."""
        known = frozenset[Violation]()
        for violation in self.check(case):
            if self.beyond and case.operation is Operation.UPDATE:
                known = known or frozenset(self.check(case.before()))
            if violation not in known:
                yield self.named(violation)

    def named(self, violation: Violation) -> Violation:
        """``violation`` with this rule's name, if it has none."""
        if violation.rule:
            return violation
        return Violation(violation.path, violation.message, violation.passing, self.name)


def asked(
    rules: Iterable[Rule], kind: str, case: Case[Any]
) -> Iterator[tuple[Rule, Violation]]:
    """What all of ``rules`` that are for the case find, each with its rule."""
    for rule in rules:
        if (
            kind in rule.kinds
            and case.operation in rule.operations
            and rule.name not in case.limits.off
        ):
            for violation in rule.found(case):
                yield rule, violation

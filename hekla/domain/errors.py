"""What can go wrong, in the words of the domain. Knows nothing of gRPC, SQL or HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Violation:
    """One reason why an object cannot be accepted."""

    path: str
    """Where: ``spec.tasks[0].replicas``, or empty for the object as a whole."""
    message: str
    """What is wrong, with the value: ``must be >= 0, is -1``."""
    passing: bool = False
    """It is not the object that is wrong: it may be accepted when something else changes."""
    rule: str = ""
    """The name of the rule of admission that says so, if one does."""
    value: str = ""
    """What stands at the path, as messages show it; empty if nothing does."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class DomainError(Exception):
    """Base of every error a caller may be told about. Its text is for the caller."""


class NotFoundError(DomainError):
    """The named object does not exist."""


class AlreadyExistsError(DomainError):
    """An object of that name exists."""


class InvalidError(DomainError):
    """The request can never succeed as it stands."""

    def __init__(self, message: str, violations: Sequence[Violation] = ()) -> None:
        super().__init__(message)
        self.violations = tuple(violations)

    @classmethod
    def of(cls, violations: Sequence[Violation]) -> InvalidError:
        """An error that says all of ``violations``, one after the other."""
        return cls("; ".join(str(violation) for violation in violations), violations)


class ConflictError(DomainError):
    """Someone else changed the object first; read it again and retry."""


class PreconditionError(DomainError):
    """The object's present state does not allow it."""


class DeniedError(DomainError):
    """The caller may not do this."""


class ExhaustedError(DomainError):
    """A limit is reached; the same call may succeed later."""

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UnavailableError(DomainError):
    """Something this depends on cannot be reached now; nothing was done, or it is unknown."""


class TimedOutError(DomainError):
    """What was waited for did not come in time; it may still come. No server sends it."""


class CursorExpiredError(DomainError):
    """A cursor is too old, or of another store: list again and watch from there."""


class NotServedError(DomainError):
    """The method exists in the contract but is not served yet."""

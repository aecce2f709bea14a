"""What callers ask for and what they get: plain values, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from hekla.kube import errors
from hekla.kube.resources import Resource

TIMEOUT: Final = "Timeout"
"""Sent, not answered, and not there when looked for: it may still happen."""
UNAVAILABLE: Final = "Unavailable"
"""A read that got no answer."""
NOT_SENT: Final = "NotSent"
"""Never reached the API server: it has not happened and will not."""
FENCED: Final = "Fenced"
"""Not sent, since the fence was down."""


class Reply(NamedTuple):
    """What became of one request."""

    status: int
    """The HTTP status; 0: never answered, and looking for its effect did not tell. ``reason``
    is then ``Timeout`` (it may still happen), ``NotSent`` or ``Fenced`` (it will not)."""
    object: dict[str, Any] | None
    """The object as it is now, where the answer tells; with 409 the one that exists."""
    reason: str = ""
    """A word to act on: ``AlreadyExists``, ``Conflict``, …; empty if it went well."""
    message: str = ""
    """A sentence to show."""

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return 200 <= self.status < 300

    def found(self) -> dict[str, Any]:
        """The object.

        Raises:
            DomainError: the request failed; the kind of error says how.
        """
        if not self.ok or self.object is None:
            raise errors.error_for(self.status, self.reason, self.message)
        return self.object


@dataclass(frozen=True, slots=True)
class Deletion:
    """Delete one object."""

    resource: Resource
    namespace: str | None
    name: str
    uid: str | None = None
    """Only if it is this very one; else the answer is 409."""
    grace_seconds: int | None = None
    propagation: str | None = None
    """``Background``, ``Foreground`` or ``Orphan``; None leaves it to the kind's default."""
    version: int | None = None
    """Only if it has not changed since this resource version; else the answer is 409."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Merge ``body`` into one object (RFC 7386)."""

    resource: Resource
    namespace: str | None
    name: str
    body: dict[str, Any]
    """May name ``metadata.resourceVersion`` or ``metadata.uid`` as a precondition."""
    subresource: str | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """Place one pod on a node."""

    namespace: str
    name: str
    uid: str
    """Only if it is this very pod; else the answer is 409."""
    node: str

"""Calls that change something are done once for each request id, however often they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from hekla.domain.errors import ConflictError, DomainError
from hekla.store import requests
from hekla.store.batch import Question
from hekla.store.database import Database, Session
from hekla.store.requests import Answered, RequestKey

CALLER: Final = "anonymous"
"""Until callers are told apart, all share one space of request ids."""

Answer = TypeVar("Answer")


class TwinError(Exception):
    """The same request was noted by a call that ran beside this one."""


class Asking(NamedTuple):
    """One call, by what its repetitions are known."""

    method: str
    id: str
    """Empty: the call is always new."""
    body: bytes
    """What is asked for, without the id."""

    @property
    def key(self) -> RequestKey:
        """What it is noted by."""
        return RequestKey(CALLER, self.method, self.id)

    def note(
        self, session: Session, *, uids: Sequence[UUID] = (), warnings: Sequence[str] = ()
    ) -> None:
        """Note, in the transaction that does it, that it is done.

        Raises:
            TwinError: it was done just now; roll back.
        """
        if not requests.record(session, self.key, self.body, uids=uids, warnings=warnings):
            raise TwinError

    def noting(
        self, *, uids: Sequence[UUID] = (), warnings: Sequence[str] = ()
    ) -> Sequence[Question[bool]]:
        """As :meth:`note`, to be asked together with other things; then :func:`require_new`."""
        if not self.id:
            return ()
        return [requests.recording(self.key, self.body, uids=uids, warnings=warnings)]


def require_new(noted: Sequence[Question[bool]]) -> None:
    """Make sure that what was noted was new.

    Raises:
        TwinError: it was done before, or just now; roll back.
    """
    if not all(one.answer for one in noted):
        raise TwinError


def once(
    database: Database,
    asking: Asking,
    act: Callable[[], Answer],
    again: Callable[[Session, Answered], Answer],
) -> Answer:
    """``act()``, which notes the call; or the answer ``again`` if it was noted before.

    Most calls are new. So ``act`` is tried first, and the note is looked for when it is
    refused, for whatever reason: what was answered is answered again, though it may be refused
    by now.

    Raises:
        InvalidError: the same id came with another body.
    """
    try:
        return act()
    except (TwinError, DomainError) as error:
        before = _before(database, asking, again)
        if before:
            return before[0]
        if isinstance(error, DomainError):
            raise
        raise ConflictError("the same request is under way; try again") from None


def _before(
    database: Database, asking: Asking, again: Callable[[Session, Answered], Answer]
) -> tuple[Answer] | None:
    if not asking.id:
        return None
    finding = requests.finding(asking.key, asking.body)
    database.ask(finding)
    found = finding.answer
    if found is None:
        return None
    with database.transaction() as session:
        return (again(session, found),)


def done_before(session: Session, answered: Answered) -> None:
    """The answer, again, to a call whose answer says nothing."""
    del session, answered

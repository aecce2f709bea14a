"""Calls that change something are done once for each request id, however often they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from hekla.domain.errors import AlreadyExistsError, ConflictError
from hekla.store import requests
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


def once(
    database: Database,
    asking: Asking,
    act: Callable[[], Answer],
    again: Callable[[Session, Answered], Answer],
) -> Answer:
    """``act()``, which notes the call; or the answer ``again`` if it was noted before.

    Raises:
        InvalidError: the same id came with another body.
    """
    before = _before(database, asking, again)
    if before:
        return before[0]
    try:
        return act()
    except (TwinError, AlreadyExistsError) as error:
        # The name may have been taken by a twin too.
        before = _before(database, asking, again)
        if before:
            return before[0]
        if isinstance(error, AlreadyExistsError):
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

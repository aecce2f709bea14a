"""Commands that are custom resources: obeyed once, told of on their target, and removed.

A command is noted by its uid in the transaction that passes it on; only then its custom
resource is deleted. Whoever finds it again, after a crash in between, sees that it is done.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from hekla.domain import names, timestamps
from hekla.domain.errors import (
    ConflictError,
    DomainError,
    InvalidError,
    NotFoundError,
    PreconditionError,
)
from hekla.domain.names import Key
from hekla.domain.trigger import Command
from hekla.kube import told
from hekla.kube.client import KubeClient
from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.deciding import Delete, Insert, Row, RowStep, Rules, Step
from hekla.kube.mirror.rows import Mirrored
from hekla.kube.resources import COMMANDS, EVENTS, JOBS, QUEUES, Resource
from hekla.store import commands, jobs, queues, requests
from hekla.store.database import Database, Session
from hekla.store.requests import RequestKey
from services.controller.job_commands import action_of, check_command
from services.controller.mirror.jobs import Hold, held
from services.controller.queue_states import CLOSE, OPEN, close, open_

TIMEOUT: Final = 5.0
PATIENCE: Final = 60.0
"""Seconds that a command waits for a target that has a custom resource and is not stored."""
COMPONENT: Final = "hekla-controller"
ISSUED: Final = "CommandIssued"
REFUSED: Final = "CommandRefused"
_TARGETS: Final = {
    (names.JOB_API_VERSION, "Job"): JOBS,
    (names.SCHEDULING_API_VERSION, "Queue"): QUEUES,
}

log = logging.getLogger(__name__)


class Told(Enum):
    """Who tells what became of a command."""

    BY_THE_JOB = auto()
    """By an event of its own, which is shown in Kubernetes too."""
    NOT_YET = auto()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command asks for."""

    uid: str
    key: Key
    action: str
    target: Resource | None
    named: Mapping[str, Any]
    """The target as the command names it."""
    reason: str
    message: str

    @property
    def target_key(self) -> Key:
        """Where the target is."""
        namespaced = self.target is not None and self.target.namespaced
        return Key(self.key.namespace if namespaced else "", str(self.named.get("name") or ""))


def read(custom: Custom) -> Asked:
    """What a custom resource asks for; whatever it is not is empty."""
    raw = custom.raw
    named = raw.get("target")
    named = named if isinstance(named, Mapping) else {}
    return Asked(
        uid=custom.uid,
        key=custom.key,
        action=str(raw.get("action") or ""),
        target=_TARGETS.get((str(named.get("apiVersion")), str(named.get("kind")))),
        named=named,
        reason=str(raw.get("reason") or ""),
        message=str(raw.get("message") or ""),
    )


def decide(custom: Custom | None, row: Row | None, rules: Rules) -> Sequence[Step]:
    """Obey, then remove. There are no rows to be read."""
    del row, rules
    if custom is None or custom.deleting:
        return []
    return [Insert(custom), Delete(custom)]


class CommandRows:
    """Passes commands on."""

    def __init__(
        self,
        database: Database,
        kube: KubeClient,
        hold: Hold,
        closing: Callable[[], None],
    ) -> None:
        """See the class.

        Args:
            database: where jobs and queues are.
            kube: where their custom resources are, and events go.
            hold: proves in a transaction that this process mirrors.
            closing: told when a queue was asked to close.
        """
        self._database = database
        self._kube = kube
        self._hold = hold
        self._closing = closing
        self._waited_for: dict[str, float] = {}
        """Since when the targets of commands, by their uids, were waited for."""

    def read(self, keys: Collection[Key]) -> Mapping[Key, Row]:
        """Nothing: what was obeyed is noted by uid."""
        del keys
        return {}

    def keys(self) -> Collection[Key]:
        """Nothing."""
        return ()

    def take_many(self, steps: Sequence[RowStep]) -> None:
        """Commands are obeyed one by one."""
        for step in steps:
            self.take(step)

    def take(self, step: RowStep) -> None:
        """Obey a command unless it was obeyed before, and tell its target.

        Raises:
            ConflictError: its target is there and not stored yet.
        """
        assert isinstance(step, Insert)
        asked = read(step.custom)
        reason, message = ISSUED, f"{asked.action} as the Command {asked.key} asks"
        try:
            new = self._noted(asked, lambda session: _obey(session, asked))
        except (NotFoundError, InvalidError, PreconditionError) as error:
            if isinstance(error, NotFoundError) and self._is_to_come(asked):
                raise ConflictError(f"{error}, but will soon") from error
            reason, message = REFUSED, f"the Command {asked.key} was not obeyed: {error}"
            new = self._noted(asked, lambda _: Told.NOT_YET)
        self._waited_for.pop(asked.uid, None)
        if new is None:
            return
        log.info("command", extra={"uid": asked.uid, "reason": reason, "said": message})
        if new is Told.NOT_YET:
            self._tell(asked, reason, message)
        if asked.action == CLOSE:
            self._closing()

    def _noted(self, asked: Asked, act: Callable[[Session], Told]) -> Told | None:
        """Act, and note by the command's uid that it is done; None if it was done before."""
        key = RequestKey("kube", "Command", asked.uid)
        with self._database.transaction() as session:
            held(self._hold, session)
            if not requests.record(session, key, asked.uid.encode(), uids=[]):
                requests.keep(session, key)  # it cannot be removed, and is found again
                return None
            return act(session)

    def _is_to_come(self, asked: Asked) -> bool:
        """Whether there is a custom resource that its target will be stored from."""
        since = self._waited_for.setdefault(asked.uid, time.monotonic())
        if asked.target is None or time.monotonic() - since > PATIENCE:
            return False  # one that cannot be taken would be waited for for ever
        key = asked.target_key
        reply = self._kube.get(asked.target, key.namespace or None, key.name, timeout=TIMEOUT)
        if reply.status == HTTPStatus.NOT_FOUND:
            return False
        if not reply.ok or reply.object is None:
            return True  # who knows; it is tried again
        wanted = str(asked.named.get("uid") or "")
        meta = reply.object["metadata"]
        return not wanted or (meta["uid"] == wanted and "deletionTimestamp" not in meta)

    def _tell(self, asked: Asked, reason: str, message: str) -> None:
        """Make an event of the target, or of the command if it names none that we know."""
        body = _event(asked, reason, message, timestamps.to_text(datetime.now(UTC)))
        try:
            [reply] = self._kube.create_many(EVENTS, [body], timeout=TIMEOUT)
        except DomainError as error:
            log.info("event not made", extra={"error": str(error)})
            return
        if not reply.ok and reply.status != HTTPStatus.CONFLICT:
            log.info("event not made", extra={"error": reply.message or reply.reason})


def _obey(session: Session, asked: Asked) -> Told:
    """Pass a command on.

    Raises:
        NotFoundError: there is no such target.
        InvalidError, PreconditionError: it cannot do that, or not now.
    """
    if asked.target is JOBS:
        _ask_job(session, asked)
        return Told.BY_THE_JOB
    if asked.target is QUEUES:
        _ask_queue(session, asked)
        return Told.NOT_YET
    found = f"{asked.named.get('kind')} of {asked.named.get('apiVersion')}"
    raise InvalidError(f"its target must be a Job or a Queue, is {found}")


def _ask_job(session: Session, asked: Asked) -> None:
    stored = jobs.get(session, asked.target_key)
    _require_target(asked, stored.uid, stored.custom_uid or "")
    command = Command(0, action_of(asked.action), reason=asked.reason, message=asked.message)
    check_command(stored, command)
    commands.ask(session, stored.uid, command)


def _ask_queue(session: Session, asked: Asked) -> None:
    found = next(iter(queues.mirrored(session, [asked.target_key.name])), None)
    if found is None:
        raise NotFoundError(f"queue {asked.target_key.name} does not exist")
    _require_target(asked, found.uid, str(found.cr_uid or ""))
    if asked.action == OPEN:
        open_(session, found.queue)
    elif asked.action == CLOSE:
        close(session, found.queue)
    else:
        wanted = f"{asked.action[:60]!r} for a queue: {OPEN} or {CLOSE}"
        raise InvalidError(f"there is no action {wanted}")


def _require_target(asked: Asked, *uids: UUID | str) -> None:
    """Make sure that it is the object that is named, not another one of its name."""
    wanted = str(asked.named.get("uid") or "")
    if wanted and wanted not in map(str, uids):
        raise NotFoundError(
            f"{asked.target_key.name} with the uid {wanted[:60]} does not exist"
        )


def _event(asked: Asked, reason: str, message: str, at: str) -> dict[str, Any]:
    about, key, uid = COMMANDS, asked.key, asked.uid
    if asked.target is not None and asked.target_key.name:
        about, key, uid = asked.target, asked.target_key, str(asked.named.get("uid") or "")
    return told.event(
        about,
        key,
        uid,
        reason=reason,
        message=message,
        at=at,
        once=f"{asked.uid}/{reason}",
        component=COMPONENT,
        type_=told.NORMAL if reason == ISSUED else told.WARNING,
    )


def mirrored_commands(
    database: Database, kube: KubeClient, hold: Hold, closing: Callable[[], None]
) -> Mirrored:
    """Commands, as the mirror takes them; ``closing`` is told when a queue is to close."""
    return Mirrored(
        COMMANDS,
        CommandRows(database, kube, hold, closing),
        rules=Rules(shows=False),
        status_apart=False,
        decide=decide,
    )

"""Does what is decided about rows: many together, and each alone where that fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hekla.domain.errors import (
    DeniedError,
    DomainError,
    ExhaustedError,
    InvalidError,
    PreconditionError,
    UnavailableError,
)
from hekla.domain.names import Key
from hekla.kube.mirror.board import Board
from hekla.kube.mirror.complaints import Complaints
from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.deciding import (
    Adopt,
    Delete,
    Gone,
    Insert,
    Removed,
    Replace,
    Row,
    RowStep,
    Show,
    Step,
    Update,
)
from hekla.kube.mirror.rows import DeposedError, Mirrored, SpentError
from hekla.kube.mirror.writing import Writer
from hekla.telemetry import metrics

log = logging.getLogger(__name__)

TOGETHER: Final = 100
"""Steps that a service takes in one transaction: others wait for what it locks."""
INVALID: Final = "Invalid"
DENIED: Final = "Denied"
NOT_NOW: Final = "NotNow"
FAULT: Final = "InternalError"


@dataclass(slots=True)
class Look:
    """One object that is looked at."""

    key: Key
    custom: Custom | None
    row: Row | None
    steps: Sequence[Step]
    failed: bool = False


class Taker:
    """Writes the rows of one kind."""

    def __init__(
        self,
        kind: Mirrored,
        board: Board,
        writer: Writer,
        complaints: Complaints,
        clock: Callable[[], float],
    ) -> None:
        self._kind = kind
        self._board = board
        self._writer = writer
        self._complaints = complaints
        self._clock = clock

    def take(self, looks: Sequence[Look]) -> None:
        """Do what is to be done to rows; a look that failed says so.

        Raises:
            UnavailableError: what holds the rows is away.
            DeposedError: this process does not lead any more.
        """
        steps: list[tuple[Look, RowStep]] = []
        for look in looks:
            for step in look.steps:
                if isinstance(step, Gone | Replace) and not self._is_gone(step):
                    look.failed = True
                elif isinstance(step, Gone):
                    steps.append((look, self._with_orphans(step)))
                elif isinstance(step, Insert | Replace | Update | Adopt | Removed):
                    steps.append((look, step))
        for start in range(0, len(steps), TOGETHER):
            self._take_together(steps[start : start + TOGETHER])

    def _take_together(self, steps: Sequence[tuple[Look, RowStep]]) -> None:
        try:
            self._kind.rows.take_many([step for _, step in steps])
        except (UnavailableError, DeposedError):
            raise
        except Exception as error:  # one of a batch: each is tried alone
            if not isinstance(error, DomainError):
                log.exception("batch of rows failed", extra={"kind": self._kind.name})
            steps = [(look, step) for look, step in steps if self._take_alone(look, step)]
        for look, step in steps:
            self._taken(look.key, step)

    def _take_alone(self, look: Look, step: RowStep) -> bool:
        if look.failed:
            return False
        try:
            self._kind.rows.take(step)
        except (UnavailableError, DeposedError):
            raise
        except SpentError as error:
            log.info("custom resource is spent", extra={"error": str(error)})
            look.failed = True
            if look.custom is not None:
                self._writer.delete([Delete(look.custom)])
        except InvalidError as error:
            self._refuse(look, step, INVALID, str(error))
        except DeniedError as error:
            self._refuse(look, step, DENIED, str(error))
        except (PreconditionError, ExhaustedError) as error:
            self._refuse(look, step, NOT_NOW, str(error))
            self._board.put_off([look.key])
        except DomainError as error:  # something changed under us
            log.info("row not taken", extra={"kind": self._kind.name, "error": str(error)})
            look.failed = True
            self._board.put_off([look.key])
        except Exception:  # one item of a batch
            log.exception("row failed", extra={"kind": self._kind.name, "key": str(look.key)})
            message = "a fault of Hekla's; the log of its service says more"
            self._refuse(look, step, FAULT, message)
            self._board.put_off([look.key])
        else:
            return True
        return False

    def _refuse(self, look: Look, step: RowStep, reason: str, message: str) -> None:
        """Say why a custom resource is not taken; the row that it has goes on, and shows it."""
        look.failed = True
        if look.custom is not None:
            new = isinstance(step, Insert | Replace)
            self._complaints.say(look.custom, reason, message, in_status=new)
            for one in look.steps:
                if isinstance(one, Show):
                    show_row(self._board, one)

    def _taken(self, key: Key, step: RowStep) -> None:
        name = self._kind.name
        metrics.mirror_steps.labels(name, type(step).__name__.lower()).inc()
        heard = self._board.heard_at(key)
        if isinstance(step, Insert | Replace | Update) and heard is not None:
            metrics.mirror_seconds.labels(name, "in").observe(self._clock() - heard)
        self._complaints.forget(key)
        if isinstance(step, Insert | Replace | Adopt):
            self._board.mark([key])  # its status is to be shown

    def _with_orphans(self, step: Gone) -> Gone:
        """The step, with what is known of how the custom resource was deleted."""
        key, uid = step.row.key, step.row.custom_uid
        orphans = self._board.leaves_dependents(key, uid)
        unseen = step.custom is None and not self._board.seen_to_go(key, uid)
        return replace(step, orphans=orphans, unseen=unseen and not orphans)

    def _is_gone(self, step: Gone | Replace) -> bool:
        """Whether the custom resource of a row is gone, or going, for certain.

        What is known of custom resources may be older than what the row follows: another
        process may have seen more of them.
        """
        key, uid = step.row.key, step.row.custom_uid
        going = isinstance(step, Gone) and step.custom is not None
        if going or self._board.seen_to_go(key, uid):
            return True
        sure, found = self._writer.find(key)
        heir = found is not None and found.uid != uid
        if isinstance(step, Replace):
            gone = heir and found is not None and found.uid == step.custom.uid
        else:
            gone = heir or (sure and found is None)
        if not gone:
            self._board.put_off([key])
        return gone


def show_row(board: Board, step: Show) -> None:
    """Have a row's status shown in its turn."""
    urgent = phase_of(step.custom.status) != phase_of(step.row.status)
    board.show(step.custom.key, step.custom.uid, step.row.status, urgent=urgent)


def phase_of(status: Any) -> str:
    """The phase that a status tells, in any of the ways that kinds do."""
    state = status.get("state")
    if isinstance(state, dict):
        return str(state.get("phase") or "")
    return str(state or status.get("phase") or "")

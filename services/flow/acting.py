"""Does what was recorded: has the controller make and remove the jobs of steps.

Every act may be repeated, and may overlap with another worker's: the controller is asked with
an id that follows from the flow, the step and the attempt, and does it once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from hekla import failpoint
from hekla.api.job import Job
from hekla.domain.errors import (
    AlreadyExistsError,
    DeniedError,
    DomainError,
    InvalidError,
    NotFoundError,
    PreconditionError,
)
from hekla.domain.names import Key
from hekla.store import flow_steps, job_templates
from hekla.store.database import Session
from services.flow.clients import Controller
from services.flow.core.jobs import flow_of, forgotten, request_id
from services.flow.seeing import see


@dataclass(frozen=True, slots=True)
class StepAct:
    """Something to do about one step's job."""

    step: str
    attempt: int
    key: Key
    """Of the job."""
    job: Mapping[str, object] | None = None
    """As it was written down."""
    uid: UUID | None = None
    """Of the job that is to go."""


@dataclass(frozen=True, slots=True)
class Acts:
    """What there is to do for a flow."""

    create: Sequence[StepAct] = ()
    settle: Sequence[StepAct] = ()
    """Whether these were made is to be found out; they are not wanted any more."""
    remove: Sequence[StepAct] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.settle or self.remove)


@dataclass(slots=True)
class Done:
    """What came of it."""

    seen: list[Job] = field(default_factory=list)
    gone: list[Job] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    """Steps whose jobs were never made."""
    refused: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Steps whose jobs were not made, with reason and message."""
    unknown: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Steps for which it is not known; asked again, the controller knows."""
    late: bool = False
    """Time ran out before everything was done."""

    @property
    def failed(self) -> bool:
        """Whether something is to be tried again after a while."""
        return bool(self.refused or self.unknown)


@dataclass(frozen=True, slots=True)
class Acted:
    """What was done for a flow, and what came of it."""

    flow: UUID
    namespace: str
    done: Done


def note(session: Session, acted: Acted) -> None:
    """Write down what came of acts."""
    flow, done = acted.flow, acted.done
    news = [see(session, flow, job, gone=False) for job in done.seen]
    news += [see(session, flow, job, gone=True) for job in done.gone]
    for step in done.absent:
        flow_steps.unplan(session, flow, step, None)
    for step, why in done.refused.items():
        flow_steps.unplan(session, flow, step, why)
    for step, why in done.unknown.items():
        flow_steps.put_off(session, flow, step, why)
    made_or_gone = [step for step in news if step is not None]
    if made_or_gone:
        job_templates.wake(session, acted.namespace, made_or_gone)


class Actor:
    """Acts on jobs for any number of workers."""

    def __init__(self, controller: Controller, *, lease: timedelta) -> None:
        self._controller = controller
        # The last call begins after a third of the lease and ends after two.
        self._span = lease.total_seconds() / 3

    def act(self, flow: UUID, namespace: str, acts: Acts) -> Acted:
        """Do it, as far as time allows; ``note`` what came of it."""
        done = Done()
        until = time.monotonic() + self._span
        for kind, each in (
            (self._remove, acts.remove),
            (self._settle, acts.settle),
            (self._create, acts.create),
        ):
            for one in each:
                if time.monotonic() > until:
                    done.late = True
                    return Acted(flow, namespace, done)
                kind(flow, one, done)
        return Acted(flow, namespace, done)

    def _create(self, flow: UUID, act: StepAct, done: Done) -> None:
        job = Job.model_validate(act.job)
        asked = request_id(flow, act.step, act.attempt)
        try:
            made = self._controller.create(job, request_id=asked, timeout=self._span)
            failpoint.hit("flow.created")
            done.seen.append(made)
        except AlreadyExistsError:
            # Ours, if the store was restored to before we knew of it.
            self._adopt(flow, act, done)
        except (InvalidError, PreconditionError) as error:
            done.refused[act.step] = _why("JobRefused", error)
        except DeniedError as error:
            done.refused[act.step] = _why("JobDenied", error)
        except DomainError as error:
            done.unknown[act.step] = _why("ControllerUnavailable", error)

    def _adopt(self, flow: UUID, act: StepAct, done: Done) -> None:
        try:
            found = self._controller.named(act.key)
        except DomainError as error:
            done.unknown[act.step] = _why("ControllerUnavailable", error)
            return
        if found is not None and flow_of(found) == flow:
            done.seen.append(found)
            return
        message = f"job {act.key} exists and is not this flow's"
        done.refused[act.step] = {"reason": "JobNameTaken", "message": message}

    def _settle(self, flow: UUID, act: StepAct, done: Done) -> None:
        try:
            found = self._controller.named(act.key)
        except DomainError as error:
            done.unknown[act.step] = _why("ControllerUnavailable", error)
            return
        if found is not None and flow_of(found) == flow:
            done.seen.append(found)
        else:
            # One that is on its way all the same is removed when it is seen.
            done.absent.append(act.step)

    def _remove(self, flow: UUID, act: StepAct, done: Done) -> None:
        assert act.uid is not None
        asked = request_id(flow, act.step, act.attempt, "delete")
        try:
            going = self._controller.delete(
                act.key, act.uid, request_id=asked, timeout=self._span
            )
            done.seen.append(going)
        except NotFoundError:
            self._was(act, done)
        except DomainError as error:
            done.unknown[act.step] = _why("ControllerUnavailable", error)

    def _was(self, act: StepAct, done: Done) -> None:
        """A job that is gone, as it last was."""
        assert act.uid is not None
        try:
            last = self._controller.remembered(act.uid)
        except DomainError as error:
            done.unknown[act.step] = _why("ControllerUnavailable", error)
            return
        done.gone.append(last or forgotten(act.key, act.uid))


def _why(reason: str, error: DomainError) -> Mapping[str, str]:
    return {"reason": reason, "message": str(error)}

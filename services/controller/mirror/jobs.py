"""Jobs as rows of the mirror."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from uuid import UUID

from hekla.api.job import Job
from hekla.domain import names
from hekla.domain.errors import ConflictError, NotFoundError, PreconditionError
from hekla.domain.names import Key
from hekla.domain.phases import JobPhase
from hekla.kube.client import KubeClient
from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.deciding import (
    Adopt,
    Gone,
    Insert,
    Removed,
    Replace,
    Row,
    RowStep,
    Rules,
    Source,
    Update,
)
from hekla.kube.mirror.rows import DeposedError, Mirrored, SpentError
from hekla.kube.requests import Patch
from hekla.kube.resources import JOBS, PODS
from hekla.rpc.admission import CREATE, UPDATE, Admission
from hekla.store import attempts, jobs, mirrored
from hekla.store.database import Database, Session
from services.controller.mirror.reading import born, to_object, to_row, to_uid

Hold = Callable[[Session], None]
"""Makes sure that this process leads; raises PreconditionError otherwise."""


def held(hold: Hold, session: Session) -> None:
    """Make sure that this process leads until the transaction ends.

    Raises:
        DeposedError: it does not.
    """
    try:
        hold(session)
    except PreconditionError as error:
        raise DeposedError(str(error)) from error


class JobRows:
    """The rows of jobs."""

    def __init__(
        self, database: Database, admission: Admission, hold: Hold, kube: KubeClient
    ) -> None:
        self._kube = kube
        self._database = database
        self._admission = admission
        self._hold = hold

    def read(self, keys: Collection[Key]) -> Mapping[Key, Row]:
        """The jobs of these names."""
        with self._database.transaction() as session:
            found = mirrored.jobs_named(session, keys)
        # The backlog has no custom resources: a job gets one when it starts, with its pods.
        return {key: to_row(one, wanted=False) for key, one in found.items()}

    def keys(self) -> Collection[Key]:
        """Names of jobs that have a custom resource."""
        with self._database.transaction() as session:
            return mirrored.job_keys(session)

    def take(self, step: RowStep) -> None:
        """Do one step."""
        self.take_many([step])

    def take_many(self, steps: Sequence[RowStep]) -> None:
        """Do all of these, or none."""
        objects = self._reviewed(steps)
        steps = [self._with_orphans(step) for step in steps]
        for step in steps:
            if isinstance(step, Gone) and step.orphans:
                self._let_go_of_pods(step.row)
        with self._database.transaction() as session:
            held(self._hold, session)
            _require_stored_or_removed(session, steps)
            new = {
                place: born(step.custom, job)
                for place, (step, job) in enumerate(zip(steps, objects, strict=True))
                if isinstance(step, Insert | Replace) and job is not None
            }
            _require_unspent(session, [one.uid for one in new.values()])
            inserted = [one for at, one in new.items() if isinstance(steps[at], Insert)]
            if inserted:
                mirrored.insert_jobs(session, inserted)
            for step, job in zip(steps, objects, strict=True):
                self._take(session, step, job)

    def _take(self, session: Session, step: RowStep, job: Job | None) -> None:
        match step:
            case Replace(custom, row):
                assert job is not None
                mirrored.replace_job(session, to_uid_of(row), born(custom, job))
            case Update(custom, row):
                assert job is not None
                uid = to_uid_of(row)
                mirrored.update_job(session, uid, job, generation=custom.generation)
            case Adopt(custom, row):
                mirrored.adopt_job(session, to_uid_of(row), to_uid(custom))
            case Gone(row):
                _remove(session, row, orphans=step.orphans)

    def _with_orphans(self, step: RowStep) -> RowStep:
        """What went unseen left its pods if they are there and belong to nobody."""
        if not isinstance(step, Gone) or not step.unseen or step.row.source is Source.ROW:
            return step
        with self._database.transaction() as session:
            ours = {str(uid) for uid in attempts.with_pods(session, to_uid_of(step.row))}
        # By its name: some may have been let go of, by who ended half way.
        named = self._pods(step.row, {names.JOB_NAME: step.row.key.name})
        owners = [
            meta.get("ownerReferences")
            for meta in (pod["metadata"] for pod in named)
            if (meta.get("annotations") or {}).get(names.ATTEMPT_UID) in ours
        ]
        return replace(step, orphans=bool(owners) and not any(owners))

    def _pods(self, row: Row, labels: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        return self._kube.list(PODS, row.key.namespace, label_selector=labels)[0]

    def _let_go_of_pods(self, row: Row) -> None:
        """Take from the pods of a job what ties them to it: they stay when it goes.

        Raises:
            ConflictError: some changed meanwhile; try again.
        """
        pods = self._pods(row, {names.JOB_UID: row.uid})
        replies = self._kube.patch_many([_released(pod) for pod in pods])
        if not all(reply.ok or reply.status == HTTPStatus.NOT_FOUND for reply in replies):
            raise ConflictError(f"pods of job {row.key} are not let go of yet")

    def _reviewed(self, steps: Sequence[RowStep]) -> Sequence[Job | None]:
        """The jobs that custom resources hold, admitted: a webhook may have been away."""
        asked: dict[int, tuple[str, Job, Job | None]] = {}
        for place, step in enumerate(steps):
            match step:
                case Insert(custom) | Replace(custom):
                    asked[place] = (CREATE, to_object(Job, custom), None)
                case Update(custom, row):
                    with self._database.transaction() as session:
                        before = jobs.get_by_uid(session, to_uid_of(row)).job
                    asked[place] = (UPDATE, to_object(Job, custom), before)
        admitted = self._admission.jobs(list(asked.values()))
        found = dict(zip(asked, (one.object for one in admitted), strict=True))
        return [found.get(place) for place in range(len(steps))]


def _require_unspent(session: Session, uids: Sequence[UUID]) -> None:
    spent = mirrored.spent(session, uids) if uids else ()
    if spent:
        raise SpentError(f"jobs {', '.join(map(str, spent))} were removed")


def _require_stored_or_removed(session: Session, steps: Sequence[RowStep]) -> None:
    """Make sure that jobs without a row were removed: their pods go with what is deleted now.

    Raises:
        PreconditionError: nobody removed such a job; it was lost with a database.
    """
    marks = {step.custom.mark for step in steps if isinstance(step, Removed)}
    uids = {uid for uid in map(_uid, marks) if uid is not None}
    removed = mirrored.spent(session, uids) if uids else set()
    lost = marks - {str(uid) for uid in removed}
    if lost:
        raise PreconditionError(
            f"the job {', '.join(sorted(lost))} that it was made from is not stored any more,"
            " though nobody removed it (was a database restored?): its pods are left alone;"
            " delete this one, and they go"
        )


def _uid(mark: str) -> UUID | None:
    try:
        return UUID(mark)
    except ValueError:
        return None


def _released(pod: Mapping[str, Any]) -> Patch:
    meta = pod["metadata"]
    kept = [one for one in meta.get("finalizers") or [] if one != names.OUTCOME_FINALIZER]
    body = {
        "metadata": {
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
            "labels": {names.JOB_UID: None},
            "finalizers": kept,
        }
    }
    return Patch(PODS, meta["namespace"], meta["name"], body)


def to_uid_of(row: Row) -> UUID:
    """The uid of a row, as the store has it."""
    return UUID(row.uid)


def _remove(session: Session, row: Row, *, orphans: bool) -> None:
    try:
        if orphans:
            mirrored.orphan_job(session, to_uid_of(row))
        else:
            mirrored.remove_job(session, to_uid_of(row))
    except NotFoundError:
        return


def _door(row: Row) -> str:
    return (
        f"job {row.key}, which was made by gRPC and has the uid {row.uid}"
        " (`hekla job delete` frees it)"
    )


def complaint(custom: Custom, reason: str, message: str, since: str) -> Mapping[str, Any]:
    """The status of a job that is not taken: it is Pending, and says why."""
    state: Mapping[str, Any] = custom.status.get("state") or {}
    if (state.get("reason"), state.get("message")) == (reason, message):
        return custom.status
    kept = [one for one in custom.status.get("conditions") or [] if one.get("status") != reason]
    return {
        **custom.status,
        "state": {
            "phase": JobPhase.PENDING.value,
            "reason": reason,
            "message": message,
            "lastTransitionTime": since,
        },
        "conditions": [*kept, {"status": reason, "lastTransitionTime": since}],
    }


def mirrored_jobs(
    database: Database, admission: Admission, hold: Hold, kube: KubeClient
) -> Mirrored:
    """Jobs, as the mirror takes them."""
    return Mirrored(
        JOBS,
        JobRows(database, admission, hold, kube),
        rules=Rules(door=_door),
        complaint=complaint,
    )

"""Flows as the mirror sees them: rows that follow custom resources, wherever there are any.

A flow whose custom resource is gone goes too, its jobs first; its name is free for another one
when they are gone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from hekla.api import decode
from hekla.api.job_flow import JobFlow
from hekla.domain import names
from hekla.domain.errors import ExhaustedError, InvalidError, NotFoundError
from hekla.domain.names import Key, flow_job_name
from hekla.kube.client import KubeClient
from hekla.kube.mirror.custom import ROW_UID
from hekla.kube.mirror.deciding import (
    Adopt,
    Gone,
    Insert,
    Removed,
    Replace,
    Row,
    RowStep,
    Update,
)
from hekla.kube.mirror.following import follow
from hekla.kube.mirror.rows import Mirrored
from hekla.kube.resources import JOBFLOWS, JOBS
from hekla.rpc.admission import CREATE, UPDATE, Admission
from hekla.store import flow_steps, job_flows
from hekla.store.database import Database, Session
from hekla.store.job_flows import Past
from hekla.store.objects import to_json
from services.flow.core.jobs import label_value
from services.flow.core.sighting import remembered
from services.flow.mirror.reading import Hold, lead, to_object, to_row


class FlowRows:
    """The rows of flows."""

    def __init__(
        self, database: Database, admission: Admission, hold: Hold, kube: KubeClient
    ) -> None:
        self._database = database
        self._admission = admission
        self._hold = hold
        self._kube = kube

    def read(self, keys: Collection[Key]) -> Mapping[Key, Row]:
        """The rows of these names that there are."""
        with self._database.transaction() as session:
            found = job_flows.mirrored(session, keys)
        return {
            one.key: to_row(
                one.flow,
                origin=one.origin,
                cr_uid=one.cr_uid,
                deleting=one.deleting_at is not None,
            )
            for one in found
        }

    def keys(self) -> Collection[Key]:
        """The names of all flows."""
        with self._database.transaction() as session:
            return job_flows.all_keys(session)

    def take(self, step: RowStep) -> None:
        """Do one step.

        Raises:
            InvalidError: the custom resource is no flow.
            ExhaustedError: another flow of that name still has jobs.
        """
        try:
            self.take_many([step])
        except ExhaustedError:
            if isinstance(step, Replace):
                self._let_go(step.row)
            raise

    def take_many(self, steps: Sequence[RowStep]) -> None:
        """Do steps, all or none."""
        steps = [self._with_orphans(step) for step in steps]
        read = [
            None if isinstance(step, Gone | Removed) else self._reviewed(step) for step in steps
        ]
        with self._database.transaction() as session:
            lead(self._hold, session)
            for step, flow in zip(steps, read, strict=True):
                if isinstance(step, Gone):
                    _end(session, step)
                elif flow is not None and not isinstance(step, Removed):
                    job_flows.follow(
                        session, flow, cr_uid=UUID(step.custom.uid), past=_past(step, flow)
                    )

    def _with_orphans(self, step: RowStep) -> RowStep:
        """What went unseen left its jobs if they are there and belong to no flow any more.

        One that was stored before it had a custom resource never owned any.
        """
        if not isinstance(step, Gone) or not step.unseen:
            return step
        if step.row.uid != step.row.custom_uid:
            return step
        with self._database.transaction() as session:
            steps = flow_steps.of_flow(session, UUID(step.row.uid))
        owners = self._owners_of_jobs(step.row.key, {str(one.job_uid) for one in steps})
        return replace(step, orphans=bool(owners) and not any(owners))

    def _owners_of_jobs(self, flow: Key, uids: Collection[str]) -> Sequence[Sequence[Any]]:
        """Which flows the custom resources of jobs belong to, for each that there is."""
        made_by = {names.CREATED_BY_JOB_FLOW: label_value(f"{flow.namespace}.{flow.name}")}
        listed, _ = self._kube.list(JOBS, flow.namespace, label_selector=made_by)
        found = [one["metadata"] for one in listed]
        return [
            [one for one in meta.get("ownerReferences") or () if one["kind"] == JOBFLOWS.kind]
            for meta in found
            if (meta.get("annotations") or {}).get(ROW_UID) in uids
        ]

    def _let_go(self, row: Row) -> None:
        with self._database.transaction() as session:
            lead(self._hold, session)
            job_flows.let_go(session, UUID(row.uid))

    def _reviewed(self, step: Insert | Replace | Update | Adopt) -> JobFlow:
        """The flow that a custom resource is, admitted: a webhook may have been away."""
        flow = to_object(JobFlow, step.custom)
        meta = flow.metadata
        if isinstance(step, Update):
            with self._database.transaction() as session:
                before = job_flows.get(session, step.row.key).flow
            flow = self._admission.job_flow(UPDATE, flow, before).object
        elif not isinstance(step, Adopt):
            flow = self._admission.job_flow(CREATE, flow).object
        return flow.model_copy(update={"metadata": meta})


def _past(step: RowStep, flow: JobFlow) -> Past | None:
    """What became of a flow before anybody here knew it, as its status tells."""
    if not isinstance(step, Insert | Replace) or not step.custom.status:
        return None
    try:
        found = decode.read({**step.custom.raw, "spec": {}})
    except InvalidError:
        return None
    assert isinstance(found, JobFlow)
    steps = {}
    for each in flow.spec.flows or ():
        seen = remembered(found.status, flow_job_name(flow.metadata.name, each.name))
        if seen is not None:
            steps[each.name] = to_json(seen)
    return Past(found.status, steps)


def _end(session: Session, step: Gone) -> None:
    """A flow's custom resource is gone; its jobs go too, unless they were to stay."""
    uid = UUID(step.row.uid)
    with suppress(NotFoundError):  # it was done before
        if step.orphans:
            job_flows.retire(session, uid, jobs_stay=True)
        elif step.custom is not None:
            job_flows.mark_deleting(session, uid)  # it shows that until it is gone
        else:
            job_flows.let_go(session, uid)


def mirrored_flows(
    database: Database, admission: Admission, hold: Hold, kube: KubeClient
) -> Mirrored:
    """Flows, for an engine."""
    return Mirrored(JOBFLOWS, FlowRows(database, admission, hold, kube), decide=follow)

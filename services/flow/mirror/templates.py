"""Templates as the mirror sees them: rows that follow custom resources where there are any."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from hekla.api.job_template import JobTemplate
from hekla.domain.names import Key
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
from hekla.kube.resources import JOBTEMPLATES
from hekla.rpc.admission import CREATE, UPDATE, Admission
from hekla.store import job_templates
from hekla.store.database import Database
from services.flow.mirror.reading import Hold, lead, to_object, to_row


class TemplateRows:
    """The rows of templates."""

    def __init__(self, database: Database, admission: Admission, hold: Hold) -> None:
        self._database = database
        self._admission = admission
        self._hold = hold

    def read(self, keys: Collection[Key]) -> Mapping[Key, Row]:
        """The rows of these names that there are."""
        with self._database.transaction() as session:
            found = job_templates.mirrored(session, keys)
        rows = [to_row(one.template, origin=one.origin, cr_uid=one.cr_uid) for one in found]
        return {row.key: row for row in rows}

    def keys(self) -> Collection[Key]:
        """The names of all templates."""
        with self._database.transaction() as session:
            return job_templates.all_keys(session)

    def take(self, step: RowStep) -> None:
        """Do one step."""
        self.take_many([step])

    def take_many(self, steps: Sequence[RowStep]) -> None:
        """Do steps, all or none."""
        read = [
            None if isinstance(step, Gone | Removed) else self._reviewed(step) for step in steps
        ]
        with self._database.transaction() as session:
            lead(self._hold, session)
            for step, template in zip(steps, read, strict=True):
                if isinstance(step, Gone):
                    job_templates.drop(session, step.row.key, uid=UUID(step.row.uid))
                elif template is not None:
                    uid = UUID(step.custom.uid)
                    job_templates.follow(session, template, cr_uid=uid)

    def _reviewed(self, step: Insert | Replace | Update | Adopt) -> JobTemplate:
        """The template that a custom resource is, admitted: a webhook may have been away."""
        template = to_object(JobTemplate, step.custom)
        meta = template.metadata
        if isinstance(step, Update):
            with self._database.transaction() as session:
                before = job_templates.get(session, step.row.key)
            template = self._admission.job_template(UPDATE, template, before).object
        elif not isinstance(step, Adopt):
            template = self._admission.job_template(CREATE, template).object
        return template.model_copy(update={"metadata": meta})


def mirrored_templates(database: Database, admission: Admission, hold: Hold) -> Mirrored:
    """Templates, for an engine."""
    return Mirrored(JOBTEMPLATES, TemplateRows(database, admission, hold), decide=follow)

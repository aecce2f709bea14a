"""What JobTemplateService does, without gRPC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID, uuid4

from hekla.api.job_template import JobTemplate
from hekla.api.naming import named
from hekla.domain import selector
from hekla.domain.errors import ConflictError, InvalidError, NotFoundError, Violation
from hekla.domain.names import Key
from hekla.kube.mirror.deciding import Row
from hekla.kube.mirror.door import Door
from hekla.rpc.admission import CREATE, UPDATE, Admission
from hekla.store import feed, job_templates
from hekla.store.database import Database, Session
from hekla.store.feed import Cursor
from hekla.store.objects import Place
from hekla.store.once import Asking, done_before, once
from hekla.store.requests import Answered
from hekla.store.scanning import scan
from services.flow.mirror.reading import to_call, to_content


class MadeTemplate(NamedTuple):
    """A template as it is stored, and what its user should be told."""

    template: JobTemplate
    warnings: Sequence[str]


class TemplatePage(NamedTuple):
    """A page of templates, where it ended unless it was the last, where to watch from."""

    templates: Sequence[JobTemplate]
    end: Place | None
    cursor: Cursor


class TemplateCalls:
    """Calls on templates."""

    def __init__(
        self, database: Database, admission: Admission, door: Door | None = None
    ) -> None:
        """See the class; by the ``door`` custom resources are written where there are any."""
        self._database = database
        self._admission = admission
        self._door = door

    def create(self, template: JobTemplate, asking: Asking) -> MadeTemplate:
        """Admit and store a template."""
        return once(
            self._database, asking, lambda: self._create(template, asking), _made_before
        )

    def _create(self, template: JobTemplate, asking: Asking) -> MadeTemplate:
        admitted = self._admission.job_template(CREATE, _named(template))
        if self._door is not None and self._door.used:
            row = self._door.post(to_content(admitted.object), to_call(asking))
            return self._written(row, asking, admitted.warnings)
        uid = uuid4()
        with self._database.transaction() as session:
            asking.note(session, uids=[uid], warnings=admitted.warnings)
            made = job_templates.make(session, admitted.object, uid=uid)
        return MadeTemplate(made, admitted.warnings)

    def _written(self, row: Row, asking: Asking, warnings: Sequence[str]) -> MadeTemplate:
        """A template whose custom resource was written, and the note that it was."""
        with self._database.transaction() as session:
            asking.note(session, uids=[UUID(row.uid)], warnings=warnings)
            return MadeTemplate(job_templates.get_by_uid(session, UUID(row.uid)), warnings)

    def get(self, key: Key) -> JobTemplate:
        """The template of that name."""
        with self._database.transaction() as session:
            return job_templates.get(session, key)

    def page(
        self, *, namespace: str, labels: str, after: Place | None, limit: int
    ) -> TemplatePage:
        """A page of templates that match."""
        wanted = selector.parse(labels)
        with self._database.snapshot() as session:
            cursor = feed.start(session)
            found = scan(
                lambda place, count: job_templates.page(
                    session, namespace=namespace, after=place, limit=count
                ),
                matches=lambda row: wanted.matches(row[1].metadata.labels or {}),
                place=lambda row: row[0],
                after=after,
                limit=limit,
                filtered=bool(labels),
            )
        return TemplatePage([template for _, template in found.rows], found.end, cursor)

    def update(
        self, template: JobTemplate, asking: Asking, *, expected_generation: int | None
    ) -> MadeTemplate:
        """Admit and store a new spec for a template that exists."""
        return once(
            self._database,
            asking,
            lambda: self._update(template, asking, expected_generation),
            _made_before,
        )

    def _update(
        self, template: JobTemplate, asking: Asking, expected_generation: int | None
    ) -> MadeTemplate:
        if not template.metadata.name:
            raise InvalidError.of([Violation("metadata.name", "is required")])
        key = Key(template.metadata.namespace or "default", template.metadata.name)
        old = self.get(key)
        given = template.metadata.uid
        if given and given != old.metadata.uid:
            message = f"job template {key} is another one now, with the uid {old.metadata.uid}"
            raise ConflictError(message)
        generation = old.metadata.generation
        if expected_generation is not None and expected_generation != generation:
            raise ConflictError(
                f"job template {key} is at generation {generation}, not {expected_generation}"
            )
        admitted = self._admission.job_template(UPDATE, _named(template), old)
        if self._door is not None and self._door.used:
            row = self._door.tied(key)
            if row.generation != generation:
                raise ConflictError(f"job template {key} changed since it was read; try again")
            row = self._door.change(to_content(admitted.object), to_call(asking), row)
            return self._written(row, asking, admitted.warnings)
        with self._database.transaction() as session:
            # Locked by the change itself; who changed it meanwhile is told apart by this.
            if job_templates.get(session, key).metadata.generation != generation:
                raise ConflictError(f"job template {key} changed since it was read; try again")
            asking.note(session, uids=[UUID(old.metadata.uid)], warnings=admitted.warnings)
            changed = job_templates.change(session, key, admitted.object)
        return MadeTemplate(changed, admitted.warnings)

    def delete(self, key: Key, asking: Asking, *, uid: UUID | None) -> None:
        """Delete a template; what was made from it stays."""

        def act() -> None:
            with self._database.transaction() as session:
                found = job_templates.get(session, key)
                if uid is not None and str(uid) != found.metadata.uid:
                    message = f"job template {key} with the uid {uid} does not exist any more"
                    raise NotFoundError(message)
                asking.note(session, uids=[UUID(found.metadata.uid)])
                job_templates.remove(session, key)

        def act_by_door() -> None:
            assert self._door is not None
            row = self._door.tied(key)
            if uid is not None and str(uid) != row.uid:
                message = f"job template {key} with the uid {uid} does not exist any more"
                raise NotFoundError(message)
            self._door.delete(row)
            with self._database.transaction() as session:
                asking.note(session, uids=[UUID(row.uid)])

        by_door = self._door is not None and self._door.used
        once(self._database, asking, act_by_door if by_door else act, done_before)


def _named(template: JobTemplate) -> JobTemplate:
    return template.model_copy(update={"metadata": named(template.metadata)})


def _made_before(session: Session, answered: Answered) -> MadeTemplate:
    return MadeTemplate(job_templates.get_by_uid(session, answered.uids[0]), answered.warnings)

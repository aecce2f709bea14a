"""CreateJob: jobs that are asked for at the same time are admitted and stored together.

Each has an answer of its own. What is refused, or was asked for before, keeps nobody else from
being stored: then each is stored in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import uuid4

from hekla.api.job import Job
from hekla.rpc.admission import CREATE, Admission, Admitted
from hekla.store import jobs
from hekla.store.database import Database
from hekla.store.once import Asking, require_new
from services.controller import new_jobs
from services.controller.gathering import Gathering, together


class Made(NamedTuple):
    """A job as it is stored, and what its user should be told."""

    job: Job
    warnings: Sequence[str]


class New(NamedTuple):
    """A job that is asked for."""

    job: Job
    asking: Asking


class _Accepted(NamedTuple):
    """One that was admitted."""

    new: New
    admitted: Admitted[Job]


class Creating:
    """Admits and stores new jobs."""

    def __init__(self, database: Database, admission: Admission) -> None:
        self._database = database
        self._admission = admission
        self._gathering = Gathering[New, Made](self.make)

    def create(self, job: Job, asking: Asking) -> Made:
        """Admit and store a job, which has its name.

        Raises:
            TwinError: the call was noted before, or just now.
            DomainError: it is refused.
        """
        return self._gathering.do(New(job, asking), weight=len(asking.body))

    def make(self, news: Sequence[New]) -> Sequence[Made | Exception]:
        """What becomes of each of ``news``, in their order."""
        outcomes: dict[int, Made | Exception] = {}
        accepted: dict[int, _Accepted] = {}
        for place, (new, one) in enumerate(zip(news, self._review(news), strict=True)):
            if isinstance(one, Exception):
                outcomes[place] = one
            else:
                accepted[place] = _Accepted(new, one)
        order = sorted(accepted, key=lambda place: _name(accepted[place]))
        stored = together(self._store, [accepted[place] for place in order])
        outcomes |= zip(order, stored, strict=True)
        return [outcomes[place] for place in range(len(news))]

    def _review(self, news: Sequence[New]) -> Sequence[Admitted[Job] | Exception]:
        return together(
            lambda some: self._admission.each_job([(CREATE, one.job, None) for one in some]),
            news,
        )

    def _store(self, accepted: Sequence[_Accepted]) -> Sequence[Made]:
        new = [(uuid4(), one.admitted.object) for one in accepted]
        # Ids in their order, then names in theirs: who stores some of the same waits in line.
        noted = [
            question
            for (uid, _), one in sorted(zip(new, accepted, strict=True), key=_id)
            for question in one.new.asking.noting(uids=[uid], warnings=one.admitted.warnings)
        ]
        with self._database.transaction() as session:
            stored = jobs.insert_many(session, new, beside=noted, due=False)
            require_new(noted)
            made = [new_jobs.look_at(session, one) for one in stored]
        return [
            Made(job, one.admitted.warnings) for job, one in zip(made, accepted, strict=True)
        ]


def _name(accepted: _Accepted) -> tuple[str, str]:
    meta = accepted.admitted.object.metadata
    return meta.namespace, meta.name


def _id(storing: tuple[object, _Accepted]) -> str:
    return storing[1].new.asking.id

"""CreateJobs: many jobs of one template, admitted once and stored in chunks.

Each chunk is a transaction that notes itself, as a call of its own would. So the call, sent
again after a kill in its middle, finds the chunks that are there and makes the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from hekla import failpoint
from hekla.api.job import Job
from hekla.api.naming import named
from hekla.domain import syntax
from hekla.domain.errors import (
    AlreadyExistsError,
    ConflictError,
    DomainError,
    InvalidError,
    PreconditionError,
    UnavailableError,
    Violation,
)
from hekla.rpc.admission import CREATE, Admission, Admitted
from hekla.store import copies, requests
from hekla.store.database import Database
from hekla.store.once import Asking, once
from hekla.store.requests import Answered

CHUNK: Final = 1_000
"""Jobs stored in one transaction."""
MOST_JOBS: Final = 100_000
MOST_VIOLATIONS: Final = 20


class MadeMany(NamedTuple):
    """The uids of the jobs, in the order of the suffixes, and what to tell their user."""

    uids: Sequence[UUID]
    warnings: Sequence[str]


class ManyCalls:
    """Calls that make many jobs."""

    def __init__(self, database: Database, admission: Admission, *, chunk: int = CHUNK) -> None:
        self._database = database
        self._admission = admission
        self._chunk = chunk

    def create(
        self,
        template: Job,
        suffixes: Sequence[str],
        asking: Asking,
        *,
        going: Callable[[], bool] = lambda: True,
    ) -> MadeMany:
        """Admit the template once, and store a job of it for each suffix.

        Raises:
            AlreadyExistsError: jobs of such names exist; nothing was made, unless it says so.
            UnavailableError: it broke off; the same call with its request id goes on.
        """
        violations = list(islice(_violations(template, suffixes), MOST_VIOLATIONS))
        if violations:
            raise InvalidError.of(violations)
        starts = range(0, len(suffixes), self._chunk)
        chunks = [suffixes[start : start + self._chunk] for start in starts]
        parts = _parts(asking, len(chunks))
        done = self._done(parts)
        left = [
            suffix
            for chunk, one in zip(chunks, done, strict=True)
            if one is None
            for suffix in chunk
        ]
        if not left:
            return _answer([one for one in done if one is not None])
        made = len(suffixes) - len(left)
        try:
            admitted = self._admission.job(CREATE, _longest(template, suffixes))
            self._refuse_taken(admitted.object.metadata.namespace, template, left, parts, done)
            answered: list[Answered] = []
            for part, chunk, one in zip(parts, chunks, done, strict=True):
                if one is None:
                    if not going():
                        raise UnavailableError("nobody waits for the answer any more")
                    one = self._store(admitted, template, chunk, part)  # noqa: PLW2901
                    made += len(chunk)
                    failpoint.hit("controller.chunk-stored")
                answered.append(one)
        except DomainError as error:
            raise _said(error, made, len(suffixes)) from error
        return _answer(answered)

    def _done(self, parts: Sequence[Asking]) -> Sequence[Answered | None]:
        """What was answered for each part, if it was."""
        if not parts[0].id:
            return [None] * len(parts)
        findings = [requests.finding(part.key, part.body) for part in parts]
        self._database.ask(*findings)
        return [finding.answer for finding in findings]

    def _refuse_taken(
        self,
        namespace: str,
        template: Job,
        left: Sequence[str],
        parts: Sequence[Asking],
        done: Sequence[Answered | None],
    ) -> None:
        """Make sure, before anything is made, that none of the names is taken."""
        try:
            with self._database.transaction() as session:
                copies.refuse_taken(session, namespace, _names(template, left))
        except AlreadyExistsError:
            if self._done(parts) != done:  # by a twin of this call
                raise ConflictError("the same request is under way; try again") from None
            raise

    def _store(
        self, admitted: Admitted[Job], template: Job, suffixes: Sequence[str], part: Asking
    ) -> Answered:
        def act() -> Answered:
            uids = [uuid4() for _ in suffixes]
            copied = list(zip(uids, _names(template, suffixes), strict=True))
            with self._database.transaction() as session:
                part.note(session, uids=uids, warnings=admitted.warnings)
                copies.insert(session, admitted.object, copied)
            return Answered(uids, admitted.warnings)

        return once(self._database, part, act, lambda _, answered: answered)


def _names(template: Job, suffixes: Sequence[str]) -> Sequence[str]:
    return [f"{template.metadata.name}-{suffix}" for suffix in suffixes]


def _violations(template: Job, suffixes: Sequence[str]) -> Iterator[Violation]:
    if not template.metadata.name:
        yield Violation("template.metadata.name", "is required: the names begin with it")
    if not suffixes:
        yield Violation("suffixes", "is required: there is one job for each")
    if len(suffixes) > MOST_JOBS:
        yield Violation("suffixes", f"must be no more than {MOST_JOBS}, are {len(suffixes)}")
        return
    seen: dict[str, int] = {}
    for index, suffix in enumerate(suffixes):
        wrong = syntax.label_error(suffix)
        first = seen.setdefault(suffix, index)
        if wrong is not None:
            yield Violation(f"suffixes[{index}]", f"{wrong}, is {suffix[:60]!r}")
        elif first != index:
            yield Violation(f"suffixes[{index}]", f"is suffixes[{first}] too: {suffix!r}")


def _longest(template: Job, suffixes: Sequence[str]) -> Job:
    """The job whose name takes most room: what holds for it holds for all."""
    name = f"{template.metadata.name}-{max(suffixes, key=len)}"
    meta = template.metadata.model_copy(update={"name": name, "generate_name": None})
    return template.model_copy(update={"metadata": named(meta)})


def _parts(asking: Asking, count: int) -> Sequence[Asking]:
    """The call in parts, each noted by itself, by the hash of the whole."""
    body = sha256(asking.body).digest()
    return [
        asking._replace(method=f"{asking.method}/{number}", body=body)
        for number in range(count)
    ]


def _answer(made: Sequence[Answered]) -> MadeMany:
    return MadeMany([uid for one in made for uid in one.uids], made[0].warnings)


def _said(error: DomainError, made: int, total: int) -> DomainError:
    """The error, with how much was done before it."""
    if not made:
        return error
    done = f"{made} of {total} jobs were made"
    more = "; the same call with its request_id makes the rest, once it can"
    match error:
        case InvalidError():
            return InvalidError(f"{error} ({done}{more})", error.violations)
        case AlreadyExistsError() | PreconditionError() | ConflictError():
            return type(error)(f"{error} ({done}{more})")
        case _:
            return UnavailableError(f"{error} ({done}{more})")

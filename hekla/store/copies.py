"""Many jobs of one template: what differs is a name, so the rest is sent and read once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import text

from hekla.api.job import Job
from hekla.domain.errors import AlreadyExistsError
from hekla.domain.names import Key
from hekla.store import batch, feed, jobs, work
from hekla.store.batch import Question
from hekla.store.database import Session
from hekla.store.objects import to_json, to_text

MOST_NAMED: Final = 10
"""Names that an error shows; of the others it tells the number."""

_INSERT = text("""
    insert into job (uid, namespace, name, labels, annotations, spec, queue, owner)
    select uid, :namespace, name, cast(:labels as jsonb), cast(:annotations as jsonb),
           cast(:spec as jsonb), :queue, cast(:owner as jsonb)
      from unnest(cast(:uids as uuid[]), cast(:names as text[])) as copy(uid, name)
    on conflict (namespace, name) do nothing
    returning uid, version
""")


def insert(session: Session, template: Job, named: Sequence[tuple[UUID, str]]) -> None:
    """Store jobs like an admitted one, each with a uid and a name, and have them looked at.

    Raises:
        AlreadyExistsError: jobs of such names exist; roll back.
    """
    meta = template.metadata
    uids = [uid for uid, _ in named]
    names = [name for _, name in named]
    owner = to_json(meta.owner_references[0]) if meta.owner_references else None
    values = {
        "namespace": meta.namespace,
        "labels": to_text(meta.labels or {}),
        "annotations": to_text(meta.annotations or {}),
        "spec": to_text(to_json(template.spec)),
        "queue": template.spec.queue,
        "owner": None if owner is None else to_text(owner),
        "uids": uids,
        "names": names,
    }
    made = batch.answer(session, batch.rows_of(_INSERT, values))
    if len(made) < len(named):
        refuse_taken(session, meta.namespace, names, but=uids)
        raise AlreadyExistsError(f"jobs of some of these {len(names)} names exist already")
    feed.record(
        session,
        *[feed.Change(jobs.KIND, str(row.uid), row.version, feed.ADDED) for row in made],
    )
    work.wake(session, jobs.KIND, *[str(uid) for uid in uids])


_TAKEN = text("""
    select name, count(*) over () as total from job
     where namespace = :namespace and name = any(cast(:names as text[]))
       and not uid = any(cast(:but as uuid[]))
     order by name limit :limit
""")


def refuse_taken(
    session: Session, namespace: str, names: Sequence[str], *, but: Sequence[UUID] = ()
) -> None:
    """Make sure that no jobs of these names exist, but those of the uids given.

    Raises:
        AlreadyExistsError: some do; it names them.
    """
    values = {"namespace": namespace, "names": list(names), "but": list(but)}
    taken = Question(_TAKEN, values | {"limit": MOST_NAMED}, list)
    found = batch.answer(session, taken)
    if not found:
        return
    shown = ", ".join(str(Key(namespace, row.name)) for row in found)
    total = int(found[0].total)
    if total == 1:
        raise AlreadyExistsError(f"job {shown} exists already")
    more = f" and {total - len(found)} more" if total > len(found) else ""
    raise AlreadyExistsError(f"{total} jobs exist already: {shown}{more}")

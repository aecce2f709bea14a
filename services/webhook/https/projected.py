"""Custom resources that are made from rows: what the mirror writes passes, edits do not.

Whoever sends it: a spec that is the row's is the mirror's, and needs no further check; any
other would be undone, so it is refused with the door that it has to take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hekla.api import decode
from hekla.api.decode import encode
from hekla.domain import names
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.names import Key
from hekla.kube.mirror import merging
from hekla.kube.mirror.custom import ROW_UID
from hekla.kube.resources import JOBS, PODGROUPS
from hekla.store import mirrored
from hekla.store.database import Database
from hekla.store.mirrored import Mirrored
from hekla.store.objects import KUBE
from services.webhook.https.envelope import Review, Verdict
from services.webhook.https.inventory import Endpoint
from services.webhook.rules.admission import Operation

ANNOTATION: Final = f"metadata.annotations[{ROW_UID}]"

Find = Callable[[str, Key], Mirrored | None]
"""The row of a kind and a name, if there is one."""


def stored(database: Database) -> Find:
    """Finds rows in Postgres."""
    named = {JOBS.kind: mirrored.jobs_named, PODGROUPS.kind: mirrored.groups_named}

    def find(kind: str, key: Key) -> Mirrored | None:
        with database.transaction() as session:
            return named[kind](session, [key]).get(key)

    return find


def judge(endpoint: Endpoint, review: Review, find: Find) -> Verdict | None:
    """The verdict on what may be made from a row; None if that is for the rules to say."""
    kind = endpoint.resource.kind
    if kind not in (JOBS.kind, PODGROUPS.kind) or not isinstance(review.object, dict):
        return None
    mark = _mark(review.object)
    if endpoint.mutates:
        return Verdict() if mark else None  # it is complete already
    if review.operation == Operation.CREATE:
        return _creation(kind, review, mark, find) if mark else None
    if review.operation == Operation.UPDATE and isinstance(review.old, dict):
        return _update(kind, review, find)
    return None


def _creation(kind: str, review: Review, mark: str, find: Find) -> Verdict:
    row = find(kind, Key(review.namespace, _name(review)))
    if row is None or str(row.uid) != mark or row.origin == KUBE:
        message = "is set by Hekla on what it makes of its own; leave it out"
        return Verdict([Violation(ANNOTATION, message)])
    return Verdict() if _is_rows(review.object, row) else _refusal(kind, row)


def _update(kind: str, review: Review, find: Find) -> Verdict | None:
    mark = _mark(review.old)
    if merging.same(review.object.get("spec"), review.old.get("spec")):
        # Labels and finalizers change without us, also while nothing here can be read: whoever
        # deletes an object may have to take finalizers off first.
        return Verdict()
    row = find(kind, Key(review.namespace, _name(review)))
    if row is None or row.origin == KUBE:
        if not mark:
            return None
        message = f"cannot be changed: what this {kind} was made from does not exist any more"
        return Verdict([Violation("spec", message)])
    uid = (review.old.get("metadata") or {}).get("uid")
    if str(row.uid) != mark and str(row.custom_uid) != uid:
        return None  # it waits for the name
    return Verdict() if _is_rows(review.object, row) else _refusal(kind, row)


def _is_rows(raw: Mapping[str, Any], row: Mirrored) -> bool:
    """Whether a custom resource has the spec of a row, with the same defaults."""
    try:
        theirs, ours = (_spec(raw, spec) for spec in (raw.get("spec") or {}, row.spec))
    except InvalidError:
        return False
    return merging.says(theirs, ours)


def _spec(raw: Mapping[str, Any], spec: Mapping[str, Any]) -> Any:
    meant = {"apiVersion": raw.get("apiVersion"), "kind": raw.get("kind"), "spec": spec}
    return encode(decode.read(meant))["spec"]


def _refusal(kind: str, row: Mirrored) -> Verdict:
    if kind == JOBS.kind:
        door = (
            f"job {row.key} was made by gRPC, and changes there: `hekla apply -f` or UpdateJob"
        )
    elif row.job_uid is not None:
        door = f"pod group {row.key} is Job {_job(row)}'s: change the Job"
    else:
        door = f"pod group {row.key} was made by gRPC: make it there anew"
    return Verdict([Violation("spec", f"cannot be changed here: {door}")])


def _job(row: Mirrored) -> str:
    return names.job_of_pod_group(row.key.name, str(row.job_uid))


def _mark(raw: Mapping[str, Any]) -> str:
    metadata = raw.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    mark = annotations.get(ROW_UID) if isinstance(annotations, dict) else None
    return mark if isinstance(mark, str) else ""


def _name(review: Review) -> str:
    metadata = review.object.get("metadata") or {}
    return review.name or str(metadata.get("name") or "")

"""Pod groups as rows of the mirror.

A job's group is its row's; its custom resource is made beside the job's, and again if somebody
deletes it. A group that somebody else made follows its custom resource.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from hekla.api.pod_group import PodGroup
from hekla.domain import names
from hekla.domain.errors import UnavailableError
from hekla.domain.names import Key
from hekla.kube.mirror.bodies import owner_reference
from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.deciding import (
    Adopt,
    Gone,
    Insert,
    Replace,
    Row,
    RowStep,
    Rules,
    Update,
    differs,
)
from hekla.kube.mirror.rows import Mirrored
from hekla.kube.resources import JOBS, PODGROUPS
from hekla.rpc.admission import CREATE, UPDATE, Admission
from hekla.store import mirrored, pod_groups
from hekla.store.database import Database, Session
from services.controller.mirror.jobs import Hold, held, to_uid_of
from services.controller.mirror.reading import born, to_object, to_row, to_uid

Owner = Callable[[Key], Custom | None]
"""The custom resource of a job, as far as is known.

Raises:
    UnavailableError: nothing is known yet.
"""


class GroupRows:
    """The rows of pod groups."""

    def __init__(
        self, database: Database, admission: Admission, hold: Hold, owner: Owner
    ) -> None:
        self._database = database
        self._admission = admission
        self._hold = hold
        self._owner = owner

    def read(self, keys: Collection[Key]) -> Mapping[Key, Row]:
        """The groups of these names; one whose job has no custom resource wants none."""
        with self._database.transaction() as session:
            found = mirrored.groups_named(session, keys)
        return {key: self._row(one) for key, one in found.items()}

    def _row(self, found: mirrored.Mirrored) -> Row:
        if found.job_uid is None:
            return to_row(found)
        job = names.job_of_pod_group(found.key.name, str(found.job_uid))
        custom = self._owner(Key(found.key.namespace, job))
        if custom is None or custom.deleting or not _is_of(custom, str(found.job_uid)):
            return to_row(found, wanted=False)
        owner = owner_reference(JOBS.api_version, JOBS.kind, job, custom.uid)
        return to_row(found, owner=owner)

    def keys(self) -> Collection[Key]:
        """Names of groups that have a custom resource, or shall have one."""
        with self._database.transaction() as session:
            return mirrored.group_keys(session)

    def take(self, step: RowStep) -> None:
        """Do one step."""
        self.take_many([step])

    def take_many(self, steps: Sequence[RowStep]) -> None:
        """Do all of these, or none."""
        objects = [self._reviewed(step) for step in steps]
        with self._database.transaction() as session:
            held(self._hold, session)
            for step, group in zip(steps, objects, strict=True):
                _take(session, step, group)

    def _reviewed(self, step: RowStep) -> PodGroup | None:
        match step:
            case Insert(custom) | Replace(custom):
                return self._admission.pod_group(CREATE, to_object(PodGroup, custom)).object
            case Update(custom, row):
                with self._database.transaction() as session:
                    before = pod_groups.get(session, row.key).group
                group = to_object(PodGroup, custom)
                return self._admission.pod_group(UPDATE, group, before).object
        return None


def _is_of(custom: Custom, job_uid: str) -> bool:
    return job_uid in (custom.uid, custom.mark)


def _take(session: Session, step: RowStep, group: PodGroup | None) -> None:
    match step:
        case Insert(custom):
            assert group is not None
            mirrored.insert_group(session, born(custom, group))
        case Replace(custom, row):
            assert group is not None
            mirrored.replace_group(session, to_uid_of(row), born(custom, group))
        case Update(custom, row):
            assert group is not None
            uid = to_uid_of(row)
            mirrored.update_group(session, uid, group, generation=custom.generation)
        case Adopt(custom, row):
            mirrored.adopt_group(session, to_uid_of(row), to_uid(custom))
        case Gone(row):
            pod_groups.remove(session, to_uid_of(row))


def _door(row: Row) -> str:
    return f"pod group {row.key}, which was made by gRPC and has the uid {row.uid}"


def complaint(custom: Custom, reason: str, message: str, since: str) -> Mapping[str, Any]:
    """The status of a group that is not taken: it is Pending, and says why."""
    others = [one for one in custom.status.get("conditions") or [] if one.get("type") != reason]
    said = [one for one in custom.status.get("conditions") or [] if one.get("type") == reason]
    if said and said[0].get("message") == message:
        return custom.status
    condition = {
        "type": reason,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }
    return {"phase": "Pending", **custom.status, "conditions": [*others, condition]}


def mirrored_groups(
    database: Database, admission: Admission, hold: Hold, owner: Owner
) -> Mirrored:
    """Pod groups, as the mirror takes them."""
    return Mirrored(
        PODGROUPS,
        GroupRows(database, admission, hold, owner),
        rules=Rules(recreate=True, behind=differs, door=_door),
        status_apart=False,
        complaint=complaint,
    )


def not_known_yet() -> UnavailableError:
    """What an owner is before all custom resources were listed."""
    return UnavailableError("custom resources of jobs are not listed yet")

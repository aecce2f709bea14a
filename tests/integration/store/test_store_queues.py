"""Queues and pod groups, stored and read back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from hekla.api.meta import ObjectMeta
from hekla.api.pod_group import PodGroup, PodGroupCondition, PodGroupSpec, PodGroupStatus
from hekla.api.queue import Queue, QueueSpec
from hekla.domain.errors import AlreadyExistsError, NotFoundError, PreconditionError
from hekla.domain.names import Key
from hekla.domain.phases import PodGroupPhase, QueueState
from hekla.store import feed, history, pod_groups, queues
from hekla.store.database import Database
from hekla.store.objects import Place
from tests.support.objects import make_queue
from tests.support.store import add_group, add_job, due, forget_work, value


def add_queue(database: Database, name: str = "q", **spec: Any) -> Queue:
    with database.transaction() as session:
        return queues.make(session, make_queue(name, **spec), uid=uuid4())


def changes(database: Database, cursor: feed.Cursor) -> list[feed.Change]:
    with database.transaction() as session:
        return list(feed.since(session, cursor).changes)


def here(database: Database) -> feed.Cursor:
    with database.transaction() as session:
        return feed.start(session)


def report(database: Database, epoch: int, said: dict[UUID, PodGroupStatus]) -> list[UUID]:
    with database.transaction() as session:
        return list(pod_groups.report(session, epoch, said))


def test_the_well_known_queues_are_made_once(database: Database) -> None:
    cursor = here(database)
    for _ in range(2):
        with database.transaction() as session:
            queues.make_well_known(session)

    with database.transaction() as session:
        root, default = queues.get(session, "root"), queues.get(session, "default")
        assert queues.children(session, "root") == ["default"]
    assert root.spec.reclaimable is False
    assert (default.spec.parent, default.spec.weight) == ("root", 1)
    assert default.status.state == "Open"
    assert [one.type for one in changes(database, cursor)] == ["ADDED", "ADDED"]


def test_a_queue_is_made_open_and_below_the_root(database: Database) -> None:
    made = add_queue(database, "q", weight=3)

    with database.transaction() as session:
        assert queues.get(session, "q") == made
        assert queues.get_by_uid(session, UUID(made.metadata.uid)) == made
        assert queues.children(session, "root") == ["q"]
        with pytest.raises(NotFoundError, match="queue other does not exist"):
            queues.get(session, "other")
        with pytest.raises(NotFoundError):
            queues.get_by_uid(session, uuid4())
    assert (made.spec.weight, made.status.state) == (3, "Open")
    with pytest.raises(AlreadyExistsError, match="queue q exists already"):
        add_queue(database, "q")


def test_queues_are_paged_by_name(database: Database) -> None:
    for name in ("c", "a", "d", "b"):
        add_queue(database, name)

    with database.transaction() as session:
        first = queues.page(session, limit=3)
        rest = queues.page(session, after=first[-1].metadata.name, limit=3)
        everything = queues.load(session, None)

    assert [one.metadata.name for one in [*first, *rest]] == ["a", "b", "c", "d"]
    assert len(everything) == 4


def test_queues_are_found_by_their_state(database: Database) -> None:
    for name in ("b", "a", "c"):
        add_queue(database, name)
    with database.transaction() as session:
        queues.change(session, "b", state=QueueState.CLOSING)
        queues.change(session, "a", state=QueueState.CLOSING)

    def names(state: QueueState) -> list[str]:
        with database.transaction() as session:
            return [one.metadata.name for one in queues.in_state(session, state)]

    assert names(QueueState.CLOSING) == ["a", "b"]
    assert names(QueueState.OPEN) == ["c"]
    assert names(QueueState.CLOSED) == []


def test_a_change_of_a_queue_is_told_once(database: Database) -> None:
    add_queue(database, "q")
    cursor = here(database)

    def change(**new: Any) -> Queue:
        with database.transaction() as session:
            return queues.change(session, "q", **new)

    closed = change(state=QueueState.CLOSED)
    assert change(state=QueueState.CLOSED) == closed
    heavy = change(queue=make_queue("q", weight=9))
    labelled = heavy.model_copy(update={"metadata": ObjectMeta(name="q", labels={"a": "b"})})
    final = change(queue=labelled)

    assert (closed.status.state, closed.metadata.generation) == ("Closed", 1)
    assert (heavy.spec.weight, heavy.metadata.generation) == (9, 2)
    assert heavy.status.state == "Closed"
    assert (final.metadata.labels, final.metadata.generation) == ({"a": "b"}, 2)
    assert [one.version for one in changes(database, cursor)] == [2, 3, 4]
    with database.transaction() as session, pytest.raises(NotFoundError):
        queues.change(session, "other", state=QueueState.OPEN)


def test_a_queue_in_use_is_not_removed(database: Database) -> None:
    def remove(name: str) -> None:
        with database.transaction() as session:
            queues.remove(session, name)

    with database.transaction() as session:
        queues.make_well_known(session)
    add_queue(database, "parent")
    add_queue(database, "q", parent="parent")
    job = add_job(database, queue="q")

    for name, why in (
        ("root", "always there"),
        ("default", "always there"),
        ("parent", "has the children q"),
        ("q", "jobs that wait or run"),
    ):
        with pytest.raises(PreconditionError, match=why):
            remove(name)
    with pytest.raises(NotFoundError):
        remove("other")

    with database.transaction() as session:
        history.retire(session, job)
    cursor = here(database)
    remove("q")
    remove("parent")

    gone = changes(database, cursor)
    assert [(one.type, one.version) for one in gone] == [("DELETED", 2), ("DELETED", 2)]
    last = Queue.model_validate(gone[0].last)
    assert (last.metadata.name, last.spec.parent) == ("q", "parent")
    assert last.metadata.resource_version == "2"


def test_a_queue_with_a_group_of_no_job_is_in_use(database: Database) -> None:
    add_queue(database, "q")
    with database.transaction() as session:
        group = pod_groups.make(
            session, Key("default", "g"), PodGroupSpec(queue="q"),
            job=None, labels={}, annotations={},
        )  # fmt: skip
    with database.transaction() as session, pytest.raises(PreconditionError):
        queues.remove(session, "q")

    with database.transaction() as session:
        pod_groups.remove(session, group.uid)
        queues.remove(session, "q")


def test_a_group_belongs_to_its_job_and_keeps_its_place_in_line(database: Database) -> None:
    job = add_job(database, "j")
    created = datetime(2026, 1, 2, tzinfo=UTC)
    key = Key("default", f"j-{job.uid}")

    with database.transaction() as session:
        made = pod_groups.make(
            session, key, PodGroupSpec(min_member=2), job=job.uid,
            labels={"a": "b"}, annotations={"c": "d"}, created_at=created,
        )  # fmt: skip

    with database.transaction() as session:
        assert pod_groups.of_job(session, job.uid) == made
        assert pod_groups.get(session, key) == made
        [(uid, document)] = pod_groups.documents(session, [str(made.uid)]).items()
        assert (uid, PodGroup.model_validate(document)) == (str(made.uid), made.group)
        assert pod_groups.find(session, made.uid) == made.group
        assert pod_groups.find(session, job.uid) is None
        with pytest.raises(NotFoundError):
            pod_groups.get(session, Key("default", "other"))
        with pytest.raises(AlreadyExistsError):
            pod_groups.make(session, key, PodGroupSpec(), job=None, labels={}, annotations={})
    [owner] = made.group.metadata.owner_references or []
    assert (owner.kind, owner.name, owner.uid) == ("Job", "j", str(job.uid))
    assert made.created_at == created
    assert (made.phase, made.group.status.phase) == (PodGroupPhase.PENDING, "Pending")
    assert (made.group.metadata.labels, made.group.metadata.annotations) == (
        {"a": "b"},
        {"c": "d"},
    )


def test_a_group_takes_a_new_shape_once(database: Database) -> None:
    group = add_group(database, add_job(database), min_member=2)
    cursor = here(database)
    shape = PodGroupSpec(min_member=1, queue="other")

    for _ in range(2):
        with database.transaction() as session:
            found = pod_groups.get(session, Key("default", group.group.metadata.name))
            pod_groups.reshape(session, found, shape)

    with database.transaction() as session:
        [found] = pod_groups.page(session, queue="other", limit=9)
    assert found.group.spec == shape
    assert found.group.metadata.generation == 2
    assert [one.version for one in changes(database, cursor)] == [2]


def test_groups_are_paged_from_the_oldest(database: Database) -> None:
    made = [add_group(database, add_job(database, f"j{number}")) for number in range(4)]

    with database.transaction() as session:
        first = pod_groups.page(session, namespace="default", limit=3)
        last = first[-1]
        rest = pod_groups.page(session, after=Place(last.created_at, last.uid), limit=3)
        assert pod_groups.page(session, namespace="other", limit=3) == []

    assert [one.uid for one in [*first, *rest]] == [one.uid for one in made]


def test_a_removed_group_is_told_with_its_last_state(database: Database) -> None:
    group = add_group(database, add_job(database), min_member=2)
    report(database, 1, {group.uid: PodGroupStatus(phase="Inqueue")})
    cursor = here(database)

    for _ in range(2):
        with database.transaction() as session:
            pod_groups.remove(session, group.uid)

    [gone] = changes(database, cursor)
    assert (gone.type, gone.version) == ("DELETED", 3)
    assert gone.last is not None
    assert gone.last["spec"]["minMember"] == 2
    assert gone.last["status"]["phase"] == "Inqueue"


def test_what_the_scheduler_says_is_shown_and_a_new_phase_wakes_the_job(
    database: Database,
) -> None:
    job = add_job(database)
    group = add_group(database, job)
    forget_work(database)
    conditions = [PodGroupCondition(type="Unschedulable", status="True", reason="NoRoom")]

    report(database, 1, {group.uid: PodGroupStatus(phase="Pending", conditions=conditions)})
    assert due(database) == {str(job.uid)}, "the job repeats why it waits"
    forget_work(database)
    counted = PodGroupStatus(phase="Pending", conditions=conditions, running=1)
    report(database, 1, {group.uid: counted})
    assert due(database) == set(), "the phase and the reason are the old ones"
    status = PodGroupStatus(phase="Running", running=2)
    report(database, 1, {group.uid: status})

    assert due(database) == {str(job.uid)}
    with database.transaction() as session:
        found = pod_groups.of_job(session, job.uid)
        assert pod_groups.counts_by_queue(session) == {"default": {"Running": 1}}
    assert found is not None
    assert (found.phase, found.group.status, found.version) == ("Running", status, 4)


def test_a_report_that_says_nothing_new_is_no_change(database: Database) -> None:
    group = add_group(database, add_job(database))
    said = {group.uid: PodGroupStatus(phase="Inqueue")}
    report(database, 1, said)
    cursor = here(database)

    report(database, 1, said)
    report(database, 2, said)

    assert changes(database, cursor) == []


def test_an_older_scheduler_is_not_heard(database: Database) -> None:
    group = add_group(database, add_job(database))
    report(database, 2, {group.uid: PodGroupStatus(phase="Running")})

    report(database, 1, {group.uid: PodGroupStatus(phase="Pending")})
    with database.transaction() as session:
        assert value(session, "select phase from pod_group") == "Running"

    report(database, 2, {group.uid: PodGroupStatus(phase="Inqueue")})
    with database.transaction() as session:
        assert value(session, "select phase from pod_group") == "Inqueue"


def test_a_report_names_the_groups_that_are_gone(database: Database) -> None:
    group = add_group(database, add_job(database))
    gone = [uuid4(), uuid4()]
    status = PodGroupStatus(phase="Running")

    assert report(database, 1, dict.fromkeys([*gone, group.uid], status)) == sorted(gone)
    assert report(database, 1, {}) == []


def test_a_queue_spec_of_defaults_comes_back_as_it_was(database: Database) -> None:
    made = add_queue(database, "q")

    assert made.spec == QueueSpec()

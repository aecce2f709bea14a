"""Jobs in Kubernetes and in Postgres: both sides agree, whatever happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from hekla.domain import names
from hekla.domain.errors import ConflictError, NotFoundError
from hekla.domain.names import Key
from hekla.domain.phases import PodGroupPhase
from hekla.kube.events import RELISTED, WatchEvent
from hekla.kube.mirror.custom import ROW_UID, read
from hekla.kube.mirror.deciding import Replace
from hekla.kube.mirror.engine import Engine
from hekla.kube.mirror.rows import SpentError
from hekla.kube.requests import Deletion, Patch
from hekla.kube.resources import EVENTS, JOBS, NAMESPACES, PODGROUPS
from hekla.store import events, history, jobs, mirrored
from hekla.store.once import Asking
from services.controller.mirror.jobs import mirrored_jobs
from services.controller.observer import Observer
from services.controller.pod_seen import project
from tests.support.mirror_scene import MirrorScene, group_name, lasting
from tests.support.waiting import wait_until


def said_of(scene: MirrorScene, uid: str) -> list[tuple[str, str, str]]:
    """The events of a job, as stored."""
    with scene.database.transaction() as session:
        found = events.of_job(session, UUID(uid))
    return sorted((one.type, one.reason, one.message) for one in found)


def told_of(scene: MirrorScene, uid: str) -> list[tuple[str, str, str]]:
    """The events of a job, as ``kubectl describe`` finds them."""
    selector = {"involvedObject.kind": "Job", "involvedObject.uid": uid}
    found, _ = scene.kube.list(EVENTS, "default", field_selector=selector)
    return sorted((one["type"], one["reason"], one["message"]) for one in found)


def free(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is nobody's any more."""
    return not pod["metadata"].get("ownerReferences") and not pod["metadata"].get("finalizers")


def test_a_job_of_kubectl_runs_and_shows_it_and_is_remembered(
    mirrored_scene: MirrorScene,
) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    made = scene.submit(lasting(name), labels={"team": "x"})
    uid = made["metadata"]["uid"]

    row = scene.wait_for_row(name)
    assert (str(row.uid), row.origin, str(row.custom_uid)) == (uid, "kube", uid)
    assert row.job.metadata.labels == {"team": "x"}
    scene.wait_for_phase(name, "Pending")
    group = scene.wait_for_group_phase(group_name(made), "Pending")
    [owner] = group["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", name, uid)

    scene.run(name, uid)
    shown = scene.wait_for_phase(name, "Running")["status"]
    assert (shown["minAvailable"], shown["running"]) == (1, 1)
    [pod] = scene.pods(name)
    [owner] = pod["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (uid, True)
    scene.wait_for_group_phase(group_name(made), "Running")

    assert said_of(scene, uid), "a job that runs has events"
    wait_until(lambda: told_of(scene, uid) == said_of(scene, uid), what="its events told")

    scene.delete(name)
    scene.wait_until_nothing_is_left(name)
    wait_until(lambda: scene.stored(name) is None, what="the job retired")
    with scene.database.transaction() as session:
        assert str(history.job(session, key=Key("default", name)).metadata.uid) == uid
        [attempt] = history.attempts(session, row.uid, limit=10)
    assert (attempt["outcome"], attempt["reason"] or attempt["doomed"]) == (
        "Removed",
        "JobDeleted",
    )


def test_a_namespace_that_is_deleted_ends_its_jobs(mirrored_scene: MirrorScene) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    body = {"metadata": {"name": name}}
    scene.kube.create_many(NAMESPACES, [body])
    job = lasting(name)
    there = job.metadata.model_copy(update={"namespace": name})
    uid = scene.insert(job.model_copy(update={"metadata": there}))
    other = scene.name()
    scene.submit(lasting(other), namespace=name)
    key = Key(name, other)

    def followed() -> bool:
        with scene.database.transaction() as session:
            return key in mirrored.jobs_named(session, [key])

    wait_until(followed, what="the job of kubectl")

    scene.kube.delete_many([Deletion(NAMESPACES, None, name)])

    def past() -> Any:
        try:
            with scene.database.transaction() as session:
                return history.job(session, uid=uid)
        except NotFoundError:
            return None

    found = wait_until(past, what="the job remembered")
    assert found.status.state.reason == "NamespaceTerminating"
    with scene.database.transaction() as session:
        assert history.events_of(session, uid)[-1].reason == "NamespaceTerminating"
    wait_until(lambda: not followed(), what="the job of kubectl gone")


@pytest.mark.parametrize("propagation", ["Foreground", "Orphan"])
def test_other_ways_of_deleting_end_well(mirrored_scene: MirrorScene, propagation: str) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    made = scene.submit(lasting(name))
    scene.wait_for_row(name)
    scene.run(name, made["metadata"]["uid"])
    scene.wait_for_phase(name, "Running")
    [before] = scene.pods(name)

    scene.delete(name, propagation)

    wait_until(lambda: scene.stored(name) is None, what="the job retired")
    wait_until(lambda: scene.custom(name) is None, what="the custom resource gone")
    if propagation == "Foreground":
        scene.wait_until_nothing_is_left(name)
    else:
        [pod] = wait_until(
            lambda: [one for one in scene.pods(name) if free(one)], what="it free"
        )
        meta = pod["metadata"]
        assert pod["status"]["phase"] == "Running"
        wait_until(lambda: scene.left(name) == [f"pods/{meta['name']}"], what="only the pod")
        # An observer that is slow looks at the pod as it was when it was a job's.
        Observer(scene.database, scene.kube).take([WatchEvent("MODIFIED", project(before))])
        assert [one["metadata"].get("deletionTimestamp") for one in scene.pods(name)] == [None]


def test_a_job_of_grpc_gets_a_custom_resource_when_it_starts(
    mirrored_scene: MirrorScene,
) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    uid = scene.insert(lasting(name))
    scene.admit(uid, PodGroupPhase.PENDING)
    assert scene.custom(name) is None

    scene.run(name, uid)
    shown = scene.wait_for_phase(name, "Running")
    assert shown["metadata"]["annotations"][ROW_UID] == str(uid)
    [pod] = scene.pods(name)
    assert pod["metadata"]["ownerReferences"][0]["uid"] == shown["metadata"]["uid"]
    group = scene.wait_for_custom(names.pod_group_name(name, str(uid)), PODGROUPS)
    assert group["metadata"]["ownerReferences"][0]["uid"] == shown["metadata"]["uid"]

    scene.delete(name)
    scene.wait_until_nothing_is_left(name)
    wait_until(lambda: scene.stored(name) is None, what="the job retired")


def test_a_changed_custom_resource_changes_its_job(mirrored_scene: MirrorScene) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    made = scene.submit(lasting(name))
    scene.wait_for_row(name)

    tasks = made["spec"]["tasks"]
    tasks[0]["replicas"] = 2
    [reply] = scene.kube.patch_many([Patch(JOBS, "default", name, {"spec": {"tasks": tasks}})])

    generation = reply.found()["metadata"]["generation"]
    wait_until(
        lambda: scene.wait_for_row(name).job.metadata.generation == generation,
        what="the row at the generation",
    )
    assert (scene.wait_for_row(name).job.spec.tasks or [])[0].replicas == 2
    scene.delete(name)
    scene.wait_until_nothing_is_left(name)


def test_grpc_changes_a_job_of_kubectl_through_its_custom_resource(
    mirrored_scene: MirrorScene,
) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    scene.submit(lasting(name))
    row = scene.wait_for_row(name)

    changed = lasting(name, priority_class_name=None)
    [task] = changed.spec.tasks or []
    spec = changed.spec.model_copy(update={"tasks": [task.model_copy(update={"replicas": 3})]})
    asking = Asking("UpdateJob", "one", b"body")
    wanted = changed.model_copy(update={"spec": spec})
    made = scene.calls.update(wanted, asking, expected_generation=1).job
    again = scene.calls.update(wanted, asking, expected_generation=1).job

    shown = scene.custom(name) or {}
    assert made.metadata.generation == shown["metadata"]["generation"] == 2
    assert shown["spec"]["tasks"][0]["replicas"] == 3
    assert again.metadata.generation == 2
    with pytest.raises(ConflictError):
        scene.calls.update(wanted, Asking("UpdateJob", "two", b"body"), expected_generation=1)

    gone = scene.calls.delete(
        Key("default", name), Asking("DeleteJob", "three", b""), uid=row.uid
    )

    assert gone.metadata.deletion_timestamp is not None
    assert scene.custom(name) is None
    scene.wait_until_nothing_is_left(name)


def test_what_ends_a_job_ends_its_custom_resource(mirrored_scene: MirrorScene) -> None:
    scene = mirrored_scene
    expires, removed = scene.name(), scene.name()
    short = lasting(expires, "100ms", ttl_seconds_after_finished=0)
    made = scene.submit(short)
    uid = scene.insert(lasting(removed))
    scene.run(expires, made["metadata"]["uid"])
    scene.run(removed, uid)
    scene.wait_for_phase(removed, "Running")

    scene.calls.delete(Key("default", removed), Asking("DeleteJob", "", b""), uid=uid)

    for name in (expires, removed):
        scene.wait_until_nothing_is_left(name)
        wait_until(lambda: scene.stored(name) is None, what="retired")  # noqa: B023
    assert scene.custom(expires) is None, "it is not taken for a new one"


def test_a_job_that_had_ended_before_anybody_knew_it_is_not_run_again(
    mirrored_scene: MirrorScene,
) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    scene.stop()
    scene.submit(lasting(name))
    state = {"phase": "Completed", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    shown = {"status": {"state": state, "succeeded": 1}}
    scene.kube.patch_many([Patch(JOBS, "default", name, shown, "status")])

    scene.start()

    row = scene.wait_for_row(name)
    assert row.job.status.state.phase == "Completed"
    assert row.finished_at is not None
    assert row.finished_at.isoformat() == "2026-01-02T03:04:05+00:00"
    scene.delete(name)
    scene.wait_until_nothing_is_left(name)


def test_a_job_that_was_lost_with_a_database_keeps_its_pods(
    mirrored_scene: MirrorScene,
) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    uid = scene.submit(lasting(name))["metadata"]["uid"]
    scene.wait_for_row(name)
    scene.run(name, uid)
    scene.wait_for_phase(name, "Running")
    [pod] = scene.pods(name)
    scene.stop()
    scene.forget(name)

    scene.start()

    scene.wait_for_row(name)
    scene.admit(uid)
    wait_until(
        lambda: scene.wait_for_row(name).job.status.state.phase == "Running",
        what="Running again",
    )
    assert [one["metadata"]["uid"] for one in scene.pods(name)] == [pod["metadata"]["uid"]]
    scene.delete(name)
    scene.wait_until_nothing_is_left(name)


def test_the_same_name_again_is_another_job(mirrored_scene: MirrorScene) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    first = scene.submit(lasting(name))
    scene.wait_for_row(name)
    scene.run(name, first["metadata"]["uid"])
    scene.wait_for_phase(name, "Running")

    scene.delete(name)
    second = scene.submit(lasting(name))

    uid = second["metadata"]["uid"]
    wait_until(lambda: str(scene.wait_for_row(name).uid) == uid, what="the new job")
    scene.admit(uid)
    wait_until(
        lambda: [pod["metadata"]["labels"][names.JOB_UID] for pod in scene.pods(name)] == [uid],
        what="a pod of the new job alone",
    )
    with scene.database.transaction() as session:
        old = history.job(session, key=Key("default", name))
        assert old.metadata.uid == first["metadata"]["uid"]
    scene.delete(name)
    scene.wait_until_nothing_is_left(name)


def test_what_is_known_from_long_ago_ends_no_job(mirrored_scene: MirrorScene) -> None:
    scene, name, other = mirrored_scene, mirrored_scene.name(), mirrored_scene.name()
    old = scene.submit(lasting(name))
    scene.wait_for_row(name)
    scene.delete(name)
    scene.wait_until_nothing_is_left(name)
    uids = {each: scene.submit(lasting(each))["metadata"]["uid"] for each in (name, other)}
    scene.run(name, uids[name])
    scene.wait_for_phase(name, "Running")
    scene.wait_for_row(other)
    kind = mirrored_jobs(scene.database, scene.admission, lambda _: None, scene.kube)
    key = Key("default", name)

    for meta in (
        {},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        {"annotations": {ROW_UID: "x"}},
    ):
        late = Engine(kind, scene.kube)
        stale = {**old, "metadata": {**old["metadata"], **meta}}
        late.take([WatchEvent(RELISTED, [stale])])
        late.work_once()

    for each in (name, other):
        row = scene.wait_for_row(each)
        assert (str(row.uid), row.deleting_at) == (uids[each], None)
    with pytest.raises(SpentError):  # not even where that seems to be the newer one
        kind.rows.take(Replace(read(JOBS, old), kind.rows.read([key])[key]))
    assert str(scene.wait_for_row(name).uid) == uids[name]
    for each in (name, other):
        scene.delete(each)
        scene.wait_until_nothing_is_left(each)


def test_a_name_that_a_job_of_grpc_has_is_waited_for(mirrored_scene: MirrorScene) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    uid = scene.insert(lasting(name))
    scene.submit(lasting(name))

    def reason() -> str:
        found = scene.custom(name) or {}
        return str(((found.get("status") or {}).get("state") or {}).get("reason") or "")

    wait_until(lambda: reason() == "NameConflict", what="NameConflict")
    status = (scene.custom(name) or {})["status"]  # it stays so while the other is there
    assert "made by gRPC" in status["state"]["message"]
    assert [one["status"] for one in status["conditions"]] == ["NameConflict"]
    wait_until(
        lambda: any(
            one["reason"] == "NameConflict" and one["involvedObject"]["name"] == name
            for one in scene.kube.list(EVENTS, "default")[0]
        ),
        what="an event",
    )
    scene.admit(uid)
    [pod] = scene.wait_for_pods(name)
    assert "ownerReferences" not in pod["metadata"]

    with scene.database.transaction() as session:
        jobs.mark_deleting(session, uid)

    wait_until(lambda: scene.wait_for_row(name).origin == "kube", what="the waiting one taken")
    wait_until(lambda: reason() == "NotInqueue", what="the row's status")
    scene.delete(name)
    scene.wait_until_nothing_is_left(name)

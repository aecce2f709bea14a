"""Jobs and pod groups in Kubernetes and in Postgres: both sides agree, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from hekla.api.decode import encode
from hekla.domain import names
from hekla.domain.errors import ConflictError, NotFoundError
from hekla.domain.names import Key
from hekla.domain.phases import PodGroupPhase
from hekla.kube import definitions
from hekla.kube.client import KubeClient
from hekla.kube.events import RELISTED, WatchEvent
from hekla.kube.mirror.custom import ROW_UID, read
from hekla.kube.mirror.deciding import Replace
from hekla.kube.mirror.engine import Engine
from hekla.kube.mirror.rows import SpentError
from hekla.kube.mirror.standing import Installed, Mirror
from hekla.kube.requests import Deletion, Patch
from hekla.kube.resources import EVENTS, JOBS, NAMESPACES, PODGROUPS
from hekla.store import events, history, jobs, mirrored, pod_groups
from hekla.store.database import Database
from hekla.store.election import Election
from hekla.store.once import Asking
from services.controller import uninstall
from services.controller.mirror.jobs import mirrored_jobs
from services.controller.observer import Observer
from services.controller.pod_seen import project
from tests.support.local_cluster import LocalCluster
from tests.support.mirror_scene import MirrorScene, lasting, mirror_scene
from tests.support.postgres import Server
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def scene(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MirrorScene]:
    database = Database(postgres.make_database("mirror_tests", template="template"))
    with mirror_scene(database, tmp_path_factory.mktemp("mirror")) as found:
        yield found
    database.close()


@pytest.fixture
def mirrored_scene(scene: MirrorScene) -> MirrorScene:
    if not scene.mirroring:
        scene.start()
    return scene


def group_name(job: Any) -> str:
    return names.pod_group_name(job["metadata"]["name"], job["metadata"]["uid"])


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
    group = scene.wait_for_custom(group_name(made), PODGROUPS)
    [owner] = group["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", name, uid)
    assert group["status"]["phase"] == "Pending"

    scene.run(name, uid)
    shown = scene.wait_for_phase(name, "Running")["status"]
    assert (shown["minAvailable"], shown["running"]) == (1, 1)
    [pod] = scene.pods(name)
    [owner] = pod["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (uid, True)
    wait_until(
        lambda: (
            (scene.custom(group_name(made), PODGROUPS) or {})["status"]["phase"] == "Running"
        ),
        what="the group shown Running",
    )

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
        [pod] = scene.pods(name)
        meta = pod["metadata"]
        assert pod["status"]["phase"] == "Running"
        assert not meta.get("ownerReferences")
        assert not meta.get("finalizers")
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
    status = (scene.custom(name) or {})["status"]
    assert "made by gRPC" in status["state"]["message"]
    assert [one["status"] for one in status["conditions"]] == ["NameConflict"]
    told, _ = scene.kube.list(EVENTS, "default")
    assert any(
        one["reason"] == "NameConflict" and one["involvedObject"]["name"] == name
        for one in told
    )
    scene.admit(uid)
    wait_until(lambda: len(scene.pods(name)) == 1, what="a pod of the job of gRPC")
    assert "ownerReferences" not in scene.pods(name)[0]["metadata"]

    with scene.database.transaction() as session:
        jobs.mark_deleting(session, uid)

    wait_until(lambda: scene.wait_for_row(name).origin == "kube", what="the waiting one taken")
    wait_until(lambda: reason() == "NotInqueue", what="the row's status")
    scene.delete(name)
    scene.wait_until_nothing_is_left(name)


def test_what_happens_while_nobody_mirrors_is_made_up_for(
    mirrored_scene: MirrorScene,
) -> None:
    scene = mirrored_scene
    gone, changed, ended, new, projected, lost, forgotten = (scene.name() for _ in range(7))
    uids = {
        name: scene.submit(lasting(name))["metadata"]["uid"] for name in (gone, changed, ended)
    }
    of_grpc = {name: scene.insert(lasting(name)) for name in (projected, lost, forgotten)}
    for name in uids:
        scene.wait_for_row(name)
    left = scene.name()
    scene.run(left, scene.submit(lasting(left))["metadata"]["uid"])
    for name, uid in of_grpc.items():
        scene.admit(uid)
        scene.wait_for_phase(name, "Pending")
        wait_until(lambda: scene.wait_for_row(name).custom_uid is not None, what="noted")  # noqa: B023
    scene.stop()

    scene.delete(gone)
    scene.kube.patch_many(
        [Patch(JOBS, "default", changed, {"metadata": {"labels": {"a": "b"}}})]
    )
    scene.delete(projected)
    scene.delete(left, "Orphan")
    wait_until(lambda: scene.custom(left) is None, what="the one without its pods gone")
    scene.submit(lasting(new))
    scene.delete(ended)
    scene.submit(lasting(ended))
    with scene.database.transaction() as session:
        stored = scene.wait_for_row(lost)
        history.retire(session, stored)
    wait_until(lambda: scene.pods(forgotten), what="its pod")
    scene.forget(forgotten)

    scene.start()

    wait_until(lambda: scene.stored(gone) is None, what="gone")
    wait_until(lambda: scene.stored(projected) is None, what="projected gone")
    wait_until(lambda: scene.stored(left) is None, what="the job without its pods retired")
    assert [pod["status"]["phase"] for pod in scene.pods(left)] == ["Running"], "they stay"
    wait_until(
        lambda: scene.wait_for_row(changed).job.metadata.labels == {"a": "b"}, what="labels"
    )
    assert scene.wait_for_row(new).origin == "kube"
    wait_until(lambda: str(scene.wait_for_row(ended).uid) != uids[ended], what="another")
    wait_until(lambda: scene.custom(lost) is None, what="the leftover deleted")
    told = f"the job {of_grpc[forgotten]} that it was made from is not stored any more"
    wait_until(
        lambda: any(told in one["message"] for one in scene.kube.list(EVENTS, "default")[0]),
        what="that nothing is known of it",
    )
    assert scene.custom(forgotten) is not None, "what runs and was forgotten goes on"
    assert scene.pods(forgotten)
    for name in (changed, new, ended, forgotten):
        scene.delete(name)
        scene.wait_until_nothing_is_left(name)


def test_uninstalling_takes_what_was_made_of_rows_and_leaves_what_users_made(
    mirrored_scene: MirrorScene,
) -> None:
    scene, ours, theirs = mirrored_scene, mirrored_scene.name(), mirrored_scene.name()
    scene.submit(lasting(theirs))
    scene.wait_for_row(theirs)
    uid = scene.insert(lasting(ours))
    scene.run(ours, uid)
    scene.wait_for_phase(ours, "Running")
    group = names.pod_group_name(ours, str(uid))
    scene.wait_for_custom(group, PODGROUPS)
    scene.stop()
    told: list[str] = []

    found = uninstall.look(scene.database, scene.kube)
    uninstall.remove_made(scene.kube, found.made, told.append)

    assert {one.name for one in found.made} >= {ours, group}
    assert told == [f"removed {len(found.made)} custom resources"]
    assert scene.custom(ours) is None
    assert scene.custom(theirs) is not None
    scene.delete(theirs)
    scene.start()
    for name in (ours, theirs):
        scene.wait_until_nothing_is_left(name)


def test_kinds_that_are_installed_later_are_noticed(scene: MirrorScene, tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, "--runtime=simulate", "--nodes=0").start()
    with KubeClient.start(str(cluster.kubeconfig), isolated=False) as kube:
        mirror = Mirror(
            kube,
            [JOBS, PODGROUPS],
            ballot=Election(scene.database, "later", holder="test"),
            engines=lambda: [],
            beside=lambda _: nullcontext(),
            look_every=0,
        )
        mirror.look()
        before = mirror.installed, mirror.problem()
        definitions.install(kube)
        mirror.look()
        assert before == (Installed.NO, None), "pods are made, without owners"
        assert mirror.installed is Installed.YES
    cluster.end()


def test_an_api_server_that_was_away_is_made_up_for(mirrored_scene: MirrorScene) -> None:
    scene, name, other = mirrored_scene, mirrored_scene.name(), mirrored_scene.name()
    made = scene.submit(lasting(name))
    scene.wait_for_row(name)
    scene.wait_for_phase(name, "Pending")

    scene.cluster.end()
    uid = scene.insert(lasting(other))
    scene.admit(made["metadata"]["uid"])
    scene.admit(uid)
    scene.cluster.start()

    scene.run(name, made["metadata"]["uid"])
    wait_until(lambda: scene.phase(name) == "Running", timeout=20, what="Running again")
    wait_until(lambda: scene.custom(other) is not None, timeout=20, what="the other made")
    for each in (name, other):
        scene.delete(each)
        scene.wait_until_nothing_is_left(each)


def test_one_that_cannot_be_read_is_told_so_and_holds_up_no_other(
    mirrored_scene: MirrorScene,
) -> None:
    scene, bad, good = mirrored_scene, mirrored_scene.name(), mirrored_scene.name()
    body = encode(lasting(bad))
    body["spec"]["tasks"][0]["template"] = {"spec": {"containers": []}}
    body.pop("status", None)
    scene.kube.create_many(JOBS, [body])
    scene.submit(lasting(good))

    scene.wait_for_row(good)

    def state() -> Any:
        return ((scene.custom(bad) or {}).get("status") or {}).get("state") or {}

    wait_until(lambda: state().get("reason") == "Invalid", what="told")
    assert "containers" in state()["message"]
    assert scene.stored(bad) is None
    scene.kube.patch_many(
        [
            Patch(
                JOBS, "default", bad, {"spec": {"tasks": encode(lasting(bad))["spec"]["tasks"]}}
            )
        ]
    )
    scene.wait_for_row(bad)

    broken = {"spec": {"tasks": body["spec"]["tasks"]}}
    scene.kube.patch_many([Patch(JOBS, "default", bad, broken)])
    wait_until(
        lambda: (
            (bad, "Invalid")
            in [
                (one["involvedObject"]["name"], one["reason"])
                for one in scene.kube.list(EVENTS, "default")[0]
            ]
        ),
        what="told again",
    )
    scene.run(bad, scene.wait_for_row(bad).uid)
    scene.wait_for_phase(bad, "Running")  # what runs shows that, whatever is asked of it
    for name in (bad, good):
        scene.delete(name)
        scene.wait_until_nothing_is_left(name)


def test_groups_that_others_make_follow_them(mirrored_scene: MirrorScene) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    body = {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": 3},
    }
    [made] = scene.kube.create_many(PODGROUPS, [body])
    key = Key("default", name)

    def row() -> mirrored.Mirrored | None:
        with scene.database.transaction() as session:
            return mirrored.groups_named(session, [key]).get(key)

    wait_until(lambda: row() is not None, what="the row")
    found = row()
    assert found is not None
    assert str(found.uid) == made.found()["metadata"]["uid"]
    with scene.database.transaction() as session:
        status = pod_groups.get(session, key).group.status
        pod_groups.report(
            session, scene.epoch, {found.uid: status.model_copy(update={"phase": "Inqueue"})}
        )
    wait_until(
        lambda: (
            (scene.custom(name, PODGROUPS) or {}).get("status", {}).get("phase") == "Inqueue"
        ),
        what="the phase shown",
    )
    scene.kube.patch_many([Patch(PODGROUPS, "default", name, {"spec": {"minMember": 4}})])
    wait_until(lambda: (row() or found).spec["minMember"] == 4, what="the new spec")
    scene.kube.delete_many([Deletion(PODGROUPS, "default", name)])
    wait_until(lambda: row() is None, what="the row gone")


def test_a_group_of_a_job_that_somebody_deletes_is_made_again(
    mirrored_scene: MirrorScene,
) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    made = scene.submit(lasting(name))
    group = scene.wait_for_custom(group_name(made), PODGROUPS)

    scene.kube.delete_many([Deletion(PODGROUPS, "default", group_name(made))])

    wait_until(
        lambda: (
            (scene.custom(group_name(made), PODGROUPS) or group)["metadata"]["uid"]
            != group["metadata"]["uid"]
        ),
        what="another one",
    )
    scene.delete(name)
    scene.wait_until_nothing_is_left(name)
    wait_until(lambda: scene.stored(name) is None, what="retired")
    assert scene.left(name) == []

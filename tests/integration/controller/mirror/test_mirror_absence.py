"""What happens while nobody mirrors, or there is nothing to talk to, is made up for."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from hekla.api.job import Job
from hekla.domain import names
from hekla.domain.errors import NotFoundError, UnavailableError
from hekla.domain.names import Key
from hekla.domain.phases import JobPhase
from hekla.kube import definitions, rival
from hekla.kube.client import KubeClient
from hekla.kube.events import RELISTED, WatchEvent
from hekla.kube.mirror.deciding import Gone
from hekla.kube.mirror.standing import Installed, Mirror
from hekla.kube.requests import Patch
from hekla.kube.resources import EVENTS, JOBS, PODGROUPS
from hekla.store import history, jobs
from hekla.store.election import Election
from services.controller import uninstall
from services.controller.mirror import running
from services.controller.mirror.jobs import mirrored_jobs
from services.controller.mirror.namespaces import Namespaces
from tests.support.local_cluster import LocalCluster, Object
from tests.support.mirror_scene import MirrorScene, lasting
from tests.support.volcano import volcano
from tests.support.waiting import wait_until

ADMISSION: Final = "admissionregistration.k8s.io/v1"


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


def test_pods_that_were_let_go_of_half_way_stay(mirrored_scene: MirrorScene) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    scene.run(name, scene.submit(lasting(name))["metadata"]["uid"])
    scene.wait_for_phase(name, "Running")
    scene.stop()
    scene.delete(name, "Orphan")
    wait_until(lambda: scene.custom(name) is None, what="the custom resource gone")
    kept: list[Exception] = [UnavailableError("Postgres went away")]

    def hold(_: object) -> None:
        if kept:
            raise kept.pop()

    rows = mirrored_jobs(scene.database, scene.admission, hold, scene.kube).rows
    gone = Gone(rows.read([Key("default", name)])[Key("default", name)], unseen=True)

    with pytest.raises(UnavailableError):
        rows.take(gone)
    rows.take(gone)

    assert scene.stored(name) is None, "retired at once, and its pod is nobody's"
    [pod] = scene.pods(name)
    assert pod["status"]["phase"] == "Running"
    assert names.JOB_UID not in pod["metadata"]["labels"]
    scene.start()


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


def test_a_namespace_that_went_unseen_ends_its_jobs_too(scene: MirrorScene) -> None:
    namespaces = Namespaces(scene.database, lambda _: None)
    gone = scene.name()
    leaving = {"metadata": {"name": gone, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    namespaces.take([WatchEvent(RELISTED, [leaving])])
    job = scene.insert(in_namespace(lasting("one"), gone))

    namespaces.take([WatchEvent(RELISTED, [])])  # the watch broke off meanwhile

    def ends() -> bool:
        namespaces.end_once()
        with scene.database.transaction() as session:
            try:
                return jobs.get_by_uid(session, job).deleting_at is not None
            except NotFoundError:  # it has gone by now
                return True

    wait_until(ends, timeout=5, what="the job to end")


def in_namespace(job: Job, namespace: str) -> Job:
    meta = job.metadata.model_copy(update={"namespace": namespace})
    return job.model_copy(update={"metadata": meta})


def test_a_volcano_that_is_started_later_is_given_way(
    mirrored_scene: MirrorScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, name, of_grpc = mirrored_scene, mirrored_scene.name(), mirrored_scene.name()
    for module, period in ((rival, "WATCH_EVERY"), (running, "LOOK_EVERY")):
        monkeypatch.setattr(module, period, timedelta(milliseconds=100))
    scene.stop()
    mirror = scene.start()
    wait_until(lambda: mirror.leading, what="the mirror to begin")

    with volcano(scene.cluster):
        wait_until(lambda: "is renewed" in (mirror.problem() or ""), what="it to be noticed")
        assert "the lease default/volcano of vc-1" in str(mirror.problem())
        wait_until(lambda: not mirror.leading, what="the mirror to pause")
        made = scene.submit(lasting(name))
        scene.admit(scene.insert(lasting(of_grpc)))
        why = wait_until(lambda: scene.wait_for_row(of_grpc).wait, what="why it waits")
        assert why == {"reason": "NotMirrored", "message": mirror.problem()}
        assert scene.stored(name) is None

    assert str(scene.wait_for_row(name).uid) == made["metadata"]["uid"], "it goes on by itself"
    wait_until(lambda: scene.custom(of_grpc), what="the other to start")
    for each in (name, of_grpc):
        scene.delete(each)
        scene.wait_until_nothing_is_left(each)


def test_a_job_of_grpc_says_why_it_waits_for_admission_and_starts_when_that_is_back(
    mirrored_scene: MirrorScene,
) -> None:
    scene, name = mirrored_scene, mirrored_scene.name()
    at = f"/apis/{ADMISSION}/validatingwebhookconfigurations"
    scene.cluster.make(at, away("batch.volcano.sh", "jobs"))
    uid = scene.insert(lasting(name))
    scene.admit(uid)

    def said() -> str | None:
        state = scene.wait_for_row(name).job.status.state
        return state.message if state.reason == "FailedCreate" else None

    message = wait_until(said, what="why it waits")
    assert f"the custom resource of job default/{name} was refused" in message
    assert 'failed calling webhook "away.hekla.io"' in message
    assert scene.wait_for_row(name).job.status.state.phase == JobPhase.PENDING
    assert scene.custom(name) is None
    assert scene.pods(name) == []

    scene.cluster.call("DELETE", f"{at}/away")

    wait_until(lambda: scene.pods(name), timeout=12, what="its pod")
    wait_until(lambda: scene.wait_for_row(name).wait is None, what="nothing to wait for")
    scene.delete(name)
    scene.wait_until_nothing_is_left(name)


def away(group: str, plural: str) -> Object:
    """A webhook that nobody is behind."""
    rule = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural],
    }
    webhook = {
        "name": "away.hekla.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
    }
    return {"metadata": {"name": "away"}, "webhooks": [webhook]}

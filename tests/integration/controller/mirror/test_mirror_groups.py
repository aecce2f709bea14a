"""Pod groups in Kubernetes and in Postgres, and objects that cannot be taken."""

from __future__ import annotations

from typing import Any

from hekla.api.decode import encode
from hekla.domain.names import Key
from hekla.kube.requests import Deletion, Patch
from hekla.kube.resources import EVENTS, JOBS, PODGROUPS
from hekla.store import mirrored, pod_groups
from tests.support.mirror_scene import MirrorScene, group_name, lasting
from tests.support.waiting import wait_until


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

    wait_until(
        lambda: state().get("reason") == "Invalid" and "containers" in state()["message"],
        what="told",
    )
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

    found = wait_until(row, what="the row")
    assert str(found.uid) == made.found()["metadata"]["uid"]
    with scene.database.transaction() as session:
        status = pod_groups.get(session, key).group.status
        pod_groups.report(
            session, scene.epoch, {found.uid: status.model_copy(update={"phase": "Inqueue"})}
        )
    scene.wait_for_group_phase(name, "Inqueue")
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

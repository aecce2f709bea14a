"""Queues where custom resources are installed: by kubectl's door and by ours, one truth."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from hekla.api.queue import Queue
from hekla.domain import names
from hekla.domain.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    NotFoundError,
)
from hekla.kube.mirror.custom import read
from hekla.kube.mirror.deciding import Insert
from hekla.kube.resources import COMMANDS
from hekla.store import commands, requests
from hekla.store.database import Database
from hekla.store.maintenance import REQUESTS_KEPT
from hekla.store.once import Asking
from services.controller.mirror.commands import mirrored_commands
from services.controller.queue_states import CLOSE
from services.webhook.cluster import KubeCluster
from tests.support.local_cluster import LocalCluster, Object
from tests.support.mirrors import COMMANDS_AT, QUEUES_AT, QueueScene, queue_scene
from tests.support.objects import make_queue
from tests.support.postgres import Server
from tests.support.store import add_job
from tests.support.waiting import wait_until

_numbers = itertools.count()


@pytest.fixture(scope="module")
def scene(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueueScene]:
    cluster = LocalCluster(tmp_path_factory.mktemp("queues"), "--nodes=0").start()
    database = Database(postgres.make_database("mirror_queues", template="template"))
    with queue_scene(database, cluster) as running:
        yield running
    database.close()
    assert cluster.end() == 0


@pytest.fixture
def name() -> str:
    return f"q{next(_numbers)}"


def asking(method: str = "CreateQueue", id_: str = "", body: bytes = b"") -> Asking:
    return Asking(method, id_, body)


def queue(name: str, **spec: Any) -> Queue:
    return make_queue(name, state=None, **spec)


def test_what_is_always_there_has_custom_resources_too(scene: QueueScene) -> None:
    for always in ("root", "default"):
        scene.until_shown(always, state="Open")
    root, default = scene.custom("root"), scene.custom("default")
    assert root is not None
    assert default is not None
    assert root["spec"]["reclaimable"] is False
    assert default["spec"]["parent"] == "root"

    scene.cluster.call("DELETE", f"{QUEUES_AT}/default")

    wait_until(
        lambda: (
            (scene.custom("default") or default)["metadata"]["uid"]
            != default["metadata"]["uid"]
        ),
        what="default to be made again",
    )
    assert scene.row("default") is not None


def test_a_custom_resource_is_stored_changed_and_removed(scene: QueueScene, name: str) -> None:
    made = scene.make(name, weight=3)
    row = scene.until_row(name, weight=3)
    scene.until_shown(name, state="Open", pending=0)

    assert str(row.uid) == made["metadata"]["uid"]
    assert row.queue.spec.reclaimable, "its defaults are filled in"
    patch = {"spec": {"weight": 5}, "metadata": {"labels": {"team": "a"}}}
    scene.cluster.merge(f"{QUEUES_AT}/{name}", patch)
    assert scene.until_row(name, weight=5).queue.metadata.generation == 2
    scene.cluster.merge(f"{QUEUES_AT}/{name}", {"metadata": {"labels": {"team": "b"}}})
    wait_until(
        lambda: scene.until_row(name).queue.metadata.labels == {"team": "b"}, what="labels"
    )
    scene.cluster.call("DELETE", f"{QUEUES_AT}/{name}")
    scene.until_gone(name)


def test_what_grpc_writes_is_a_custom_resource_when_it_is_answered(
    scene: QueueScene, name: str
) -> None:
    call = asking(id_=f"make-{name}", body=b"one")
    made = scene.calls.create(queue(name, weight=2), call).queue
    custom = scene.custom(name)

    assert custom is not None
    assert custom["metadata"]["uid"] == made.metadata.uid
    assert names.REQUEST_ID not in (made.metadata.annotations or {})
    again = scene.calls.create(queue(name, weight=2), call).queue
    assert again.metadata.uid == made.metadata.uid
    with pytest.raises(InvalidError, match="request_id"):
        scene.calls.create(queue(name), asking(id_=f"make-{name}", body=b"two"))
    with pytest.raises(AlreadyExistsError):
        scene.calls.create(queue(name), asking(id_=f"other-{name}"))

    labelled = made.model_copy(
        update={
            "metadata": made.metadata.model_copy(update={"labels": {"a": "b"}}),
            "spec": made.spec.model_copy(update={"weight": 7}),
        }
    )
    changed = scene.calls.update(labelled, asking("UpdateQueue"), expected_generation=1).queue
    assert (changed.spec.weight, changed.metadata.generation) == (7, 2)
    assert changed.metadata.labels == {"a": "b"}
    relabelled = changed.model_copy(
        update={"metadata": changed.metadata.model_copy(update={"labels": {"c": "d"}})}
    )
    changed = scene.calls.update(relabelled, asking("UpdateQueue"), expected_generation=2).queue
    assert (changed.metadata.labels, changed.metadata.generation) == ({"c": "d"}, 2)
    with pytest.raises(ConflictError):
        scene.calls.update(changed, asking("UpdateQueue"), expected_generation=1)

    call = asking("DeleteQueue", f"delete-{name}")
    scene.calls.delete(name, call)
    assert scene.row(name) is None
    assert scene.custom(name) is None
    scene.calls.delete(name, call)
    with pytest.raises(NotFoundError):
        scene.calls.delete(name, asking("DeleteQueue"))
    with pytest.raises(InvalidError, match="always there"):
        scene.calls.delete("root", asking("DeleteQueue"))


def test_a_call_that_died_half_way_is_answered_by_what_it_wrote(
    scene: QueueScene, name: str
) -> None:
    call = asking(id_=f"half-{name}", body=b"one")
    first = scene.calls.create(queue(name, weight=2), call).queue
    with scene.database.transaction() as session:
        session.connection().exec_driver_sql("delete from request")

    again = scene.calls.create(queue(name, weight=2), call).queue

    assert again.metadata.uid == first.metadata.uid
    with pytest.raises(InvalidError, match="choose a new one"):
        scene.calls.create(queue(name), asking(id_=f"half-{name}", body=b"two"))


def test_a_name_that_is_used_again_at_once_is_another_queue(
    scene: QueueScene, name: str
) -> None:
    scene.make(name, weight=1)
    old = scene.until_row(name, weight=1)

    scene.cluster.call("DELETE", f"{QUEUES_AT}/{name}")
    made = scene.make(name, weight=9)

    new = scene.until_row(name, weight=9)
    assert str(new.uid) == made["metadata"]["uid"] != str(old.uid)


def test_reviews_find_a_queue_that_was_made_just_now(scene: QueueScene, name: str) -> None:
    cluster = KubeCluster(scene.kube)
    scene.make(name, weight=4)

    found = cluster.queue(name)

    assert found is not None
    assert found.spec.weight == 4
    assert cluster.queue("nowhere") is None
    uid = found.metadata.uid
    assert not cluster.has_lost(name, uid)
    assert cluster.has_lost(name, "another")
    assert cluster.has_lost("nowhere", uid)
    patch = {"metadata": {"finalizers": ["a.b/c"]}}
    scene.cluster.merge(f"{QUEUES_AT}/{name}", patch)
    scene.cluster.call("DELETE", f"{QUEUES_AT}/{name}")
    assert cluster.queue(name) is None, "one that goes is not there"
    assert cluster.has_lost(name, uid)
    scene.cluster.merge(f"{QUEUES_AT}/{name}", {"metadata": {"finalizers": None}})
    scene.until_gone(name)


def command(name: str, action: str, target: Object, **more: Any) -> Object:
    return {"metadata": {"name": name}, "action": action, "target": target, **more}


def queue_target(name: str, uid: str) -> Object:
    return {
        "apiVersion": names.SCHEDULING_API_VERSION,
        "kind": "Queue",
        "name": name,
        "uid": uid,
    }


def events(scene: QueueScene, name: str) -> list[tuple[str, str]]:
    listed = scene.cluster.get("/api/v1/events")["items"]
    return [
        (each["reason"], each["message"])
        for each in listed
        if each["involvedObject"]["name"] == name
    ]


def test_a_command_is_obeyed_told_of_and_removed(scene: QueueScene, name: str) -> None:
    target = queue_target(name, scene.make(name)["metadata"]["uid"])
    scene.until_shown(name, state="Open")
    scene.cluster.make(COMMANDS_AT, command(f"close-{name}", CLOSE, target))

    scene.until_shown(name, state="Closed")

    (reason, _), *_ = wait_until(lambda: events(scene, name), what="an event")
    assert reason == "CommandIssued"
    gone = f"{COMMANDS_AT}/close-{name}"
    wait_until(lambda: scene.cluster.call("GET", gone).code == 404, what="it to be removed")
    scene.calls.command(name, "OpenQueue", asking("CommandQueue"))
    scene.until_shown(name, state="Open")


def test_a_command_for_a_job_is_passed_on_by_the_rules_of_grpc(
    scene: QueueScene, name: str
) -> None:
    job = add_job(scene.database, name)
    target = queue_target(name, str(job.uid))
    target |= {"apiVersion": names.JOB_API_VERSION, "kind": "Job"}
    for action in ("SyncJob", "AbortJob"):
        body = command(f"{action.lower()}-{name}", action, target)
        scene.cluster.make(COMMANDS_AT, body)

    def asked() -> list[str]:
        with scene.database.transaction() as session:
            return [one.action for one in commands.of_job(session, job.uid)]

    assert wait_until(asked, what="the command") == ["AbortJob"]
    refused = "action: must be one of AbortJob, RestartJob"
    wait_until(
        lambda: any(refused in said for _, said in events(scene, name)),
        what="SyncJob to be refused",
    )


def test_a_command_that_cannot_be_removed_is_not_obeyed_again(
    scene: QueueScene, name: str
) -> None:
    uid = scene.make(name)["metadata"]["uid"]
    scene.until_row(name)
    body = command(f"stays-{name}", CLOSE, queue_target(name, uid))
    meta = {"namespace": "default", "uid": str(uuid4()), "resourceVersion": "1"}
    asked = Insert(read(COMMANDS, body | {"metadata": body["metadata"] | meta}))
    rows = mirrored_commands(scene.database, scene.kube, lambda _: None, lambda: None).rows

    def later() -> None:
        with scene.database.transaction() as session:
            session.execute(
                text("update request set created_at = created_at - :most where id = :uid"),
                {"most": REQUESTS_KEPT * 0.9, "uid": meta["uid"]},
            )
            requests.prune(session, older_than=REQUESTS_KEPT)

    rows.take(asked)
    scene.calls.command(name, "OpenQueue", asking("CommandQueue"))
    for _ in range(3):
        later()
        rows.take(asked)

    row = scene.row(name)
    assert row is not None
    assert row.queue.status.state == "Open"


@pytest.mark.parametrize(
    ("action", "target", "words"),
    [
        ("ShutQueue", {}, "no action 'ShutQueue' for a queue"),
        (CLOSE, {"name": "nowhere-{}"}, "does not exist"),
        (CLOSE, {"uid": "another"}, "with the uid another does not exist"),
        (CLOSE, {"kind": "Pod"}, "must be a Job or a Queue, is Pod"),
        ("AbortJob", {"apiVersion": names.JOB_API_VERSION, "kind": "Job"}, "does not exist"),
        (CLOSE, {"name": "root"}, "with the uid"),
    ],
)
def test_a_command_that_cannot_be_obeyed_is_told_and_removed(
    scene: QueueScene, name: str, action: str, target: Object, words: str
) -> None:
    made = queue_target(name, scene.make(name)["metadata"]["uid"])
    scene.until_row(name)
    wanted = made | target
    wanted["name"] = wanted["name"].format(name)
    body = command(f"odd-{name}", action, wanted)
    scene.cluster.make(COMMANDS_AT, body)

    told = [wanted["name"], f"odd-{name}"]
    wait_until(
        lambda: any(words in said for each in told for _, said in events(scene, each)),
        what="a warning",
    )
    wait_until(
        lambda: scene.cluster.call("GET", f"{COMMANDS_AT}/odd-{name}").code == 404,
        what="it to be removed",
    )
    row = scene.row(name)
    assert row is not None
    assert row.queue.status.state == "Open"

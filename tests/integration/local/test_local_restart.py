"""The local cluster is killed with -9 again and again; nothing is lost, nothing runs twice."""

from __future__ import annotations

import random
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path

import pytest

from hekla.local.runtimes import strays
from hekla.local.runtimes.launches import SHIM, ContainerFolder, Launch
from tests.support.local_cluster import Answer, LocalCluster, Object, make_pod
from tests.support.waiting import wait_until

SPACE = "/api/v1/namespaces/default"
PODS = f"{SPACE}/pods"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    running = LocalCluster(tmp_path_factory.mktemp("cluster")).start()
    yield running
    running.end()
    strays.kill_strays(running.home)


def until_answered(cluster: LocalCluster, method: str, path: str, body: Object) -> Answer:
    """The answer, however often the server goes away before it comes."""

    def attempt() -> Answer | None:
        try:
            return cluster.call(method, path, body)
        except (OSError, HTTPException):
            return None

    answer = wait_until(attempt, timeout=60, what="an answer")
    assert answer is not None
    return answer


def code_of(pod: Object) -> int | None:
    statuses = pod["status"].get("containerStatuses") or [{}]
    code: int | None = statuses[0].get("state", {}).get("terminated", {}).get("exitCode")
    return code


def test_whatever_was_acknowledged_is_there_after_a_kill(cluster: LocalCluster) -> None:
    seed = random.Random(7)
    acknowledged: list[str] = []
    stop = threading.Event()

    def write(writer: int) -> None:
        number = 0
        while not stop.is_set():
            name = f"w{writer}-{number}"
            number += 1
            body: Object = {"metadata": {"name": name}}
            if until_answered(cluster, "POST", f"{SPACE}/configmaps", body).code in {201, 409}:
                acknowledged.append(name)

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for writer in writers:
        writer.start()
    versions = [0]
    for _ in range(4):
        count = len(acknowledged) + seed.randrange(20, 60)
        wait_until(lambda count=count: len(acknowledged) >= count, what="more writes")  # type: ignore[misc]
        cluster.kill()
        cluster.start()
        listed = cluster.get(f"{SPACE}/configmaps")
        versions.append(int(listed["metadata"]["resourceVersion"]))
    stop.set()
    for writer in writers:
        writer.join(timeout=60)

    present = {item["metadata"]["name"] for item in cluster.get(f"{SPACE}/configmaps")["items"]}
    assert present >= set(acknowledged)
    assert versions == sorted(versions)


def test_each_container_runs_exactly_once_though_its_node_is_killed(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    seed = random.Random(11)
    marks = tmp_path / "marks"
    count = 40

    def pod(index: int) -> Object:
        script = (
            f"echo {index} $HEKLA_POD_UID >>{marks}; sleep {seed.random():.2f}; exit {index}"
        )
        return make_pod(f"p{index}", "sh", "-c", script, node=f"node-{index % 3}")

    def make() -> None:
        for index in range(count):
            until_answered(cluster, "POST", PODS, pod(index))

    maker = threading.Thread(target=make)
    maker.start()
    for round_ in range(5):
        wanted = (round_ + 1) * count // 6
        wait_until(
            lambda wanted=wanted: (
                marks.exists() and len(marks.read_text().split("\n")) > wanted
            ),  # type: ignore[misc]
            what="more containers",
        )
        cluster.kill()
        cluster.start()
    maker.join(timeout=60)

    expected = {f"p{index}": index for index in range(count)}

    def codes() -> dict[str, int | None]:
        found = {pod["metadata"]["name"]: code_of(pod) for pod in cluster.get(PODS)["items"]}
        return {name: code for name, code in found.items() if name in expected}

    wait_until(lambda: codes() == expected, timeout=60, what="every exit code")
    lines = marks.read_text().splitlines()
    assert sorted(int(line.split()[0]) for line in lines) == list(range(count))


def test_a_container_that_ends_while_nobody_looks_is_told_of_later(
    cluster: LocalCluster,
) -> None:
    script = "echo out; until test -e go; do sleep 0.02; done; exit 9"
    made = cluster.make(PODS, make_pod("alone", "sh", "-c", script, node="node-0"))
    cluster.wait_for_phase("alone", "Running")
    launch = cluster.home / "pods" / made["metadata"]["uid"] / "main" / "launch-0"

    cluster.kill()
    (launch.parent / "work" / "go").touch()
    wait_until(Launch(launch).ended, what="the exit code on the disk")
    cluster.start()

    pod = cluster.wait_for_phase("alone", "Failed")
    assert code_of(pod) == 9
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert cluster.call("GET", f"{PODS}/alone/log").body == "out\n"


def test_a_stop_leaves_containers_running_and_the_next_start_takes_them_over(
    cluster: LocalCluster,
) -> None:
    script = "echo up; until test -e go; do sleep 0.02; done; exit 4"
    made = cluster.make(PODS, make_pod("taken", "sh", "-c", script, node="node-0"))
    cluster.wait_for_phase("taken", "Running")

    assert cluster.end() == 0
    (cluster.home / "pods" / made["metadata"]["uid"] / "main" / "work" / "go").touch()
    cluster.start()

    assert code_of(cluster.wait_for_phase("taken", "Failed")) == 4


def test_a_deletion_that_was_cut_short_goes_on(cluster: LocalCluster) -> None:
    script = "trap '' TERM; echo up; while true; do sleep 1000; done"
    pod = make_pod("dying", "sh", "-c", script, node="node-0", terminationGracePeriodSeconds=2)
    uid = cluster.make(PODS, pod)["metadata"]["uid"]
    wait_until(
        lambda: cluster.call("GET", f"{PODS}/dying/log").body == "up\n", what="the start"
    )
    cluster.call("DELETE", f"{PODS}/dying")

    cluster.kill()
    cluster.start()

    cluster.wait_for_phase("dying", "gone")
    assert [pid for pid, found in strays.processes() if found[strays.POD_UID] == uid] == []


def test_a_start_that_nobody_claimed_is_made_again_and_the_old_one_is_void(
    cluster: LocalCluster,
) -> None:
    """As if the kill came between the intent and the fork, and the fork came late."""
    cluster.make(PODS, make_pod("late", "sh", "-c", "exit 0"))
    uid = cluster.pod("late")["metadata"]["uid"]
    folder = cluster.home / "pods" / uid / "main"
    (folder / "launch-0").mkdir(parents=True)

    binding = {"target": {"kind": "Node", "name": "node-0"}}
    cluster.call("POST", f"{PODS}/late/binding", binding)

    pod = cluster.wait_for_phase("late", "Succeeded")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert [launch.folder.name for launch in ContainerFolder(folder).launches()] == ["launch-1"]
    assert (folder / "launch-0" / "claim").read_text() == "fenced\n"
    late = [
        "sh",
        str(SHIM),
        "setsid",
        str(folder / "launch-0"),
        "/",
        "touch",
        str(folder / "ran"),
    ]
    assert subprocess.run(late, check=False, timeout=30).returncode == 125
    assert not (folder / "ran").exists()


def test_a_container_whose_folder_is_lost_is_not_started_again(cluster: LocalCluster) -> None:
    made = cluster.make(PODS, make_pod("lost", "sleep", "1000", node="node-0"))
    cluster.wait_for_phase("lost", "Running")
    cluster.kill()
    strays.kill_strays(cluster.home)
    shutil.rmtree(cluster.home / "pods" / made["metadata"]["uid"])

    cluster.start()

    pod = cluster.wait_for_phase("lost", "Failed")
    assert code_of(pod) == 137


def test_processes_of_a_pod_that_is_no_more_are_ended_at_the_start(
    cluster: LocalCluster,
) -> None:
    made = cluster.make(PODS, make_pod("forgotten", "sleep", "1000", node="node-0"))
    uid = made["metadata"]["uid"]
    cluster.wait_for_phase("forgotten", "Running")
    cluster.kill()
    for file in cluster.home.glob("cluster.db*"):
        file.unlink()

    cluster.start()

    def left() -> list[int]:
        return [pid for pid, found in strays.processes() if found[strays.POD_UID] == uid]

    wait_until(lambda: not left(), what="the processes to end")
    wait_until(lambda: not (cluster.home / "pods" / uid).exists(), what="the folder to go")

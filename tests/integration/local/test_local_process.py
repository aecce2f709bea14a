from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hekla.domain import names
from hekla.local.runtimes import strays
from tests.support.local_cluster import LocalCluster, Object, make_pod
from tests.support.waiting import wait_until

SPACE = "/api/v1/namespaces/default"
PODS = f"{SPACE}/pods"
STUBBORN = "trap '' TERM; setsid sleep 1000 & echo up; while true; do sleep 1000; done"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    running = LocalCluster(tmp_path_factory.mktemp("cluster")).start()
    yield running
    assert running.end() == 0
    strays.kill_strays(running.home)


def shell(name: str, script: str, **spec: object) -> Object:
    return make_pod(name, "sh", "-c", script, node="node-0", **spec)


def state(pod: Object) -> Object:
    found: Object = pod["status"]["containerStatuses"][0]["state"]
    return found


def processes_of(uid: str) -> list[int]:
    return [pid for pid, environ in strays.processes() if environ[strays.POD_UID] == uid]


def log(cluster: LocalCluster, name: str, query: str = "") -> str:
    return str(cluster.call("GET", f"{PODS}/{name}/log{query}").body)


@pytest.mark.parametrize(
    ("name", "script", "phase", "code"),
    [
        ("fine", "exit 0", "Succeeded", 0),
        ("bad", "exit 3", "Failed", 3),
        ("shot", "sh -c 'kill -KILL $$$$'; exit $?", "Failed", 137),
        ("asked", "sh -c 'kill -TERM $$$$'; exit $?", "Failed", 143),
    ],
)
def test_the_exit_code_of_a_container_is_told(
    cluster: LocalCluster, name: str, script: str, phase: str, code: int
) -> None:
    cluster.make(PODS, shell(name, script))

    pod = cluster.wait_for_phase(name, "Succeeded", "Failed")

    assert pod["status"]["phase"] == phase
    assert state(pod)["terminated"]["exitCode"] == code
    assert state(pod)["terminated"]["finishedAt"] >= state(pod)["terminated"]["startedAt"]


def test_a_container_is_a_session_of_its_own_in_a_folder_of_its_own(
    cluster: LocalCluster,
) -> None:
    script = (
        "read -r pid comm st ppid pgrp session rest </proc/$$$$/stat; echo $$$$ $session; pwd"
    )
    made = cluster.make(PODS, shell("session", script))
    cluster.wait_for_phase("session", "Succeeded")

    first, folder = log(cluster, "session").splitlines()

    pid, session = first.split()
    assert pid == session
    assert Path(folder) == cluster.home / "pods" / made["metadata"]["uid"] / "main" / "work"


def test_the_environment_is_what_the_pod_says_and_nothing_of_ours(
    cluster: LocalCluster,
) -> None:
    cluster.make(
        f"{SPACE}/configmaps", {"metadata": {"name": "conf"}, "data": {"key": "value"}}
    )
    secret = {"metadata": {"name": "sec"}, "stringData": {"key": "hidden"}}
    cluster.make(f"{SPACE}/secrets", secret)

    def reference(kind: str, name: str) -> Object:
        return {"valueFrom": {kind: {"name": name, "key": "key"}}}

    pod = make_pod("env", "sh", node="node-0")
    pod["metadata"]["labels"] = {names.JOB_NAME: "job", names.TASK_SPEC: "task"}
    pod["metadata"]["annotations"] = {names.TASK_INDEX: "4", names.RUN: "2"}
    pod["spec"]["containers"][0] |= {
        "args": [
            "-c",
            "echo 'arg=$(PLAIN)-$$(PLAIN)-$(NONE)'; tr '\\0' '\\n' </proc/$$$$/environ",
        ],
        "env": [
            {"name": "PLAIN", "value": "a b"},
            {"name": "CHAIN", "value": "<$(PLAIN)>"},
            {"name": "dotted.name", "value": "odd"},
            {"name": "HEKLA_POD_UID", "value": "hidden from clean-up"},
            {"name": "CONF", **reference("configMapKeyRef", "conf")},
            {"name": "SECRET", **reference("secretKeyRef", "sec")},
            *[
                {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
                for name, path in (
                    ("NAME", "metadata.name"),
                    ("NODE", "spec.nodeName"),
                    ("IP", "status.podIP"),
                    ("LABEL", f"metadata.labels['{names.TASK_SPEC}']"),
                )
            ],
            {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ],
    }

    made = cluster.make(PODS, pod)
    done = cluster.wait_for_phase("env", "Succeeded")

    first, *lines = log(cluster, "env").splitlines()
    assert first == "arg=a b-$(PLAIN)-$(NONE)"
    found = dict(line.partition("=")[::2] for line in lines)
    uid = made["metadata"]["uid"]
    work = str(cluster.home / "pods" / uid / "main" / "work")
    assert found == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": work,
        "PWD": work,
        "LANG": "C.UTF-8",
        "HOSTNAME": "env",
        "PLAIN": "a b",
        "CHAIN": "<a b>",
        "dotted.name": "odd",
        "CONF": "value",
        "SECRET": "hidden",
        "NAME": "env",
        "NODE": "node-0",
        "IP": done["status"]["podIP"],
        "LABEL": "task",
        "CPUS": "16",
        "HEKLA_JOB": "job",
        "HEKLA_TASK": "task",
        "HEKLA_INDEX": "4",
        "HEKLA_RUN": "2",
        "HEKLA_CONTAINER": "main",
        "HEKLA_POD_UID": uid,
        "HEKLA_HOME": str(cluster.home),
    }


def test_a_container_waits_for_what_its_environment_needs(cluster: LocalCluster) -> None:
    pod = shell("needy", 'test "$X" = there')
    source = {"configMapKeyRef": {"name": "later", "key": "x"}}
    pod["spec"]["containers"][0]["env"] = [{"name": "X", "valueFrom": source}]
    cluster.make(PODS, pod)

    def reason() -> str:
        statuses = cluster.pod("needy")["status"].get("containerStatuses", [{}])
        return str(statuses[0].get("state", {}).get("waiting", {}).get("reason"))

    wait_until(lambda: reason() == "CreateContainerConfigError", what="a reason to wait")
    cluster.make(f"{SPACE}/configmaps", {"metadata": {"name": "later"}, "data": {"x": "there"}})
    cluster.wait_for_phase("needy", "Succeeded")


def test_a_container_without_a_command_waits_and_says_why(cluster: LocalCluster) -> None:
    cluster.make(PODS, make_pod("image", node="node-0"))

    def refused() -> Object | None:
        pod = cluster.pod("image")
        statuses = pod["status"].get("containerStatuses", [{}])
        reason = statuses[0].get("state", {}).get("waiting", {}).get("reason")
        return pod if reason == "ErrImagePull" else None

    pod = wait_until(refused, what="the reason")
    assert pod["status"]["phase"] == "Pending"
    assert "no images" in state(pod)["waiting"]["message"]
    cluster.call("DELETE", f"{PODS}/image")
    cluster.wait_for_phase("image", "gone")


@pytest.mark.parametrize(
    ("name", "command", "spec", "says"),
    [
        ("nowhere", ["no-such-command"], {}, "no-such-command"),
        ("no-path", ["/no/such/command"], {}, "/no/such/command"),
        ("no-folder", ["true"], {"workingDir": "/no/such/folder"}, "/no/such/folder"),
    ],
)
def test_a_command_that_cannot_start_fails_and_says_why(
    cluster: LocalCluster, name: str, command: list[str], spec: Object, says: str
) -> None:
    pod = make_pod(name, *command, node="node-0")
    pod["spec"]["containers"][0] |= spec
    cluster.make(PODS, pod)

    ended = state(cluster.wait_for_phase(name, "Failed"))["terminated"]

    assert (ended["exitCode"], ended["reason"]) == (127, "StartError")
    assert says in ended["message"]


def test_a_container_is_started_again_as_its_pod_says(cluster: LocalCluster) -> None:
    script = "echo try; test -e been && exit 0; touch been; exit 5"
    cluster.make(PODS, shell("retry", script, restartPolicy="OnFailure"))

    pod = cluster.wait_for_phase("retry", "Succeeded")

    status = pod["status"]["containerStatuses"][0]
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 5
    assert log(cluster, "retry") == "try\n"
    assert log(cluster, "retry", "?previous=true") == "try\n"


def test_a_pod_of_two_containers_ends_when_both_have(cluster: LocalCluster) -> None:
    pod = shell("pair", "echo one; exit 0")
    command = ["sh", "-c", "echo two; exit 4"]
    pod["spec"]["containers"].append({"name": "second", "image": "x", "command": command})
    cluster.make(PODS, pod)

    done = cluster.wait_for_phase("pair", "Failed")

    codes = [
        item["state"]["terminated"]["exitCode"] for item in done["status"]["containerStatuses"]
    ]
    assert codes == [0, 4]
    assert cluster.call("GET", f"{PODS}/pair/log").code == 400
    assert log(cluster, "pair", "?container=second") == "two\n"


def test_a_delete_asks_first_and_tells_how_the_container_ended(cluster: LocalCluster) -> None:
    script = "trap 'echo bye; exit 7' TERM; echo up; while true; do sleep 0.05; done"
    cluster.make(PODS, shell("polite", script))
    wait_until(lambda: log(cluster, "polite") == "up\n", what="the start")
    since = cluster.get(PODS)["metadata"]["resourceVersion"]

    with cluster.watching(f"{PODS}?watch=1&resourceVersion={since}") as watch:
        cluster.call("DELETE", f"{PODS}/polite")
        wait_until(lambda: ("DELETED", "polite") in watch.names(), what="the end", timeout=20)
    last = [event for event in watch.events if event["object"]["metadata"]["name"] == "polite"][
        -2
    ]
    assert last["type"] == "MODIFIED"
    assert state(last["object"])["terminated"]["exitCode"] == 7
    assert last["object"]["status"]["phase"] == "Failed"


def test_who_ignores_the_end_is_made_to_with_all_it_left(cluster: LocalCluster) -> None:
    made = cluster.make(PODS, shell("stubborn", STUBBORN, terminationGracePeriodSeconds=1))
    uid = made["metadata"]["uid"]
    wait_until(lambda: log(cluster, "stubborn") == "up\n", what="the start")
    wait_until(lambda: len(processes_of(uid)) >= 4, what="all of them")

    cluster.call("DELETE", f"{PODS}/stubborn")
    cluster.wait_for_phase("stubborn", "gone")

    wait_until(lambda: not processes_of(uid), what="all processes to end")
    wait_until(lambda: not (cluster.home / "pods" / uid).exists(), what="the folder to go")


def test_a_second_delete_can_only_shorten_the_time(cluster: LocalCluster) -> None:
    cluster.make(PODS, shell("hurried", STUBBORN))
    wait_until(lambda: log(cluster, "hurried") == "up\n", what="the start")

    path = f"{PODS}/hurried"
    assert cluster.call("DELETE", path).body["metadata"]["deletionGracePeriodSeconds"] == 30
    longer = cluster.call("DELETE", path, {"gracePeriodSeconds": 60}).body
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 30
    assert cluster.call("DELETE", path, {"gracePeriodSeconds": 1}).code == 200
    cluster.wait_for_phase("hurried", "gone")


def test_a_delete_by_force_removes_the_object_and_kills(cluster: LocalCluster) -> None:
    uid = cluster.make(PODS, shell("forced", STUBBORN))["metadata"]["uid"]
    wait_until(lambda: log(cluster, "forced") == "up\n", what="the start")

    cluster.call("DELETE", f"{PODS}/forced?gracePeriodSeconds=0")

    assert cluster.phase("forced") == "gone"
    wait_until(lambda: not processes_of(uid), what="all processes to end")


def test_what_a_container_leaves_behind_ends_with_it(cluster: LocalCluster) -> None:
    script = "trap '' TERM; setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' & exit 0"
    uid = cluster.make(PODS, shell("messy", script))["metadata"]["uid"]

    cluster.wait_for_phase("messy", "Succeeded")

    assert processes_of(uid) == []


def test_logs_are_read_from_either_end_and_followed(cluster: LocalCluster) -> None:
    script = (
        "for i in 1 2 3; do echo line $i; done; until test -e go; do sleep 0.02; done; echo end"
    )
    uid = cluster.make(PODS, shell("chatty", script))["metadata"]["uid"]
    wait_until(lambda: "line 3" in log(cluster, "chatty"), what="three lines")

    assert log(cluster, "chatty", "?tailLines=2") == "line 2\nline 3\n"
    assert log(cluster, "chatty", "?tailLines=0") == ""
    assert log(cluster, "chatty", "?limitBytes=6") == "line 1"
    (cluster.home / "pods" / uid / "main" / "work" / "go").touch()
    followed = log(cluster, "chatty", "?follow=true&tailLines=1")
    assert followed.splitlines()[-1] == "end"
    cluster.wait_for_phase("chatty", "Succeeded")
    assert log(cluster, "chatty") == "line 1\nline 2\nline 3\nend\n"
    assert cluster.call("GET", f"{PODS}/chatty/log?container=none").code == 400
    assert cluster.call("GET", f"{PODS}/chatty/log?timestamps=true").code == 400


def test_who_follows_a_log_stops_when_that_run_of_the_container_is_over(
    cluster: LocalCluster,
) -> None:
    cluster.make(PODS, shell("looping", "echo once; exit 0", restartPolicy="Always"))
    wait_until(lambda: log(cluster, "looping") == "once\n", what="the start")

    assert log(cluster, "looping", "?follow=true") == "once\n"
    cluster.call("DELETE", f"{PODS}/looping")


def test_everything_of_a_home_can_be_killed(cluster: LocalCluster) -> None:
    uid = cluster.make(PODS, shell("home", STUBBORN))["metadata"]["uid"]
    wait_until(lambda: len(processes_of(uid)) >= 4, what="all of them")

    assert strays.kill_strays(cluster.home / "elsewhere") == 0
    assert strays.kill_strays(cluster.home) >= 4

    assert processes_of(uid) == []
    ended = state(cluster.wait_for_phase("home", "Failed"))["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")


def test_a_container_whose_shim_was_killed_runs_on_and_is_not_started_again(
    cluster: LocalCluster,
) -> None:
    made = cluster.make(PODS, shell("orphan", "echo up; until test -e go; do sleep 0.02; done"))
    wait_until(lambda: log(cluster, "orphan") == "up\n", what="the start")
    work = cluster.home / "pods" / made["metadata"]["uid"] / "main" / "work"
    claim = work.parent / "launch-0" / "claim"
    shim = int(claim.read_text().split()[1])

    signal.pidfd_send_signal(os.pidfd_open(shim), signal.SIGKILL)

    (work / "go").touch()
    ended = state(cluster.wait_for_phase("orphan", "Failed"))["terminated"]
    assert ended["reason"] == "ContainerStatusUnknown"
    assert log(cluster, "orphan") == "up\n"

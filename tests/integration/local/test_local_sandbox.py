"""Containers in sandboxes: volumes where they are wanted, names of peers, and a clean end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hekla.local.runtimes import strays
from hekla.local.settings import NOTE
from tests.support.local_cluster import LocalCluster, Object, make_pod
from tests.support.ports import free_port
from tests.support.waiting import wait_until

SPACE = "/api/v1/namespaces/default"
FIRST, SECOND, THIRD = (f"77{number}{os.getpid()}.1" for number in (1, 2, 3))
"""Seconds that sleepers of this run sleep, and of no other on this machine."""
PODS = f"{SPACE}/pods"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    running = LocalCluster(tmp_path_factory.mktemp("cluster")).start()
    note = (running.home / NOTE).read_text()
    if note:
        running.end()
        pytest.skip(note)
    running.make(
        f"{SPACE}/configmaps", {"metadata": {"name": "conf"}, "data": {"a": "AAA", "b": "BBB"}}
    )
    running.make(f"{SPACE}/secrets", {"metadata": {"name": "sec"}, "stringData": {"s": "SSS"}})
    yield running
    assert running.end() == 0
    strays.kill_strays(running.home)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    running = LocalCluster(tmp_path_factory.mktemp("plain"), "--sandboxes=false").start()
    yield running
    assert running.end() == 0
    strays.kill_strays(running.home)


def shell(
    name: str, script: str, *, mounts: dict[str, str | Object] | None = None, **spec: Any
) -> Object:
    """A pod whose mounts are paths by volume, or more."""
    pod = make_pod(name, "sh", "-c", script, node="node-0", **spec)
    pod["spec"]["containers"][0]["volumeMounts"] = mounts_of(mounts or {})
    return pod


def mounts_of(mounts: dict[str, str | Object]) -> list[Object]:
    return [
        {"name": name, **({"mountPath": at} if isinstance(at, str) else at)}
        for name, at in mounts.items()
    ]


def init(name: str, script: str, mounts: dict[str, str | Object], **more: Any) -> Object:
    command = ["sh", "-c", script]
    return {
        "name": name,
        "image": "x",
        "command": command,
        "volumeMounts": mounts_of(mounts),
        **more,
    }


def log(cluster: LocalCluster, name: str, container: str = "main") -> str:
    return str(cluster.call("GET", f"{PODS}/{name}/log?container={container}").body)


def done(cluster: LocalCluster, pod: Object) -> str:
    """What a pod wrote that succeeded."""
    name = pod["metadata"]["name"]
    cluster.make(PODS, pod)
    ended = cluster.wait_for_phase(name, "Succeeded", "Failed")
    assert ended["status"]["phase"] == "Succeeded", log(cluster, name)
    return log(cluster, name)


def waiting(cluster: LocalCluster, name: str) -> Object:
    statuses = cluster.pod(name)["status"].get("containerStatuses", [{}])
    found: Object = statuses[0].get("state", {}).get("waiting", {})
    return found


def test_containers_of_a_pod_share_a_folder_where_each_wants_it(cluster: LocalCluster) -> None:
    script = (
        "until test -e /shared/f; do sleep 0.02; done; cat /shared/f; echo $HEKLA_VOLUME_D_1"
    )
    pod = shell("share", script, mounts={"d-1": "/shared"}, volumes=[{"name": "d-1"}])
    writer = init("writer", "echo hello >/mnt/deep/er/f", {"d-1": "/mnt/deep/er"})
    pod["spec"]["containers"].append(writer)

    assert done(cluster, pod) == "hello\n/shared\n"

    assert not Path("/shared").exists()
    assert not Path("/mnt/deep").exists()
    assert str(cluster.home) not in Path("/proc/self/mounts").read_text()


def test_a_mount_may_hide_whatever_is_ours(cluster: LocalCluster) -> None:
    top = f"/{cluster.home.parts[1]}"
    script = f"echo $PWD >{top}/f; pwd; cat {top}/f; ls -A {top} | wc -l; getent hosts hides"
    pod = shell("hides", script, mounts={"d": top}, volumes=[{"name": "d"}])

    lines = done(cluster, pod).splitlines()

    assert lines[:3] == ["/.hekla/pod/main/work"] * 2 + ["1"]
    assert lines[3].split()[1] == "hides"


def test_files_come_from_objects_with_the_names_and_modes_asked_for(
    cluster: LocalCluster,
) -> None:
    told = {"path": "told/labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    cpus = {
        "path": "cpus",
        "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"},
    }
    volumes = [
        {"name": "whole", "configMap": {"name": "conf"}},
        {
            "name": "some",
            "configMap": {
                "name": "conf",
                "defaultMode": 0o640,
                "items": [
                    {"key": "a", "path": "x/y"},
                    {"key": "b", "path": "z", "mode": 0o400},
                ],
            },
        },
        {"name": "secret", "secret": {"secretName": "sec", "defaultMode": 0o600}},
        {"name": "none", "configMap": {"name": "nowhere", "optional": True}},
        {
            "name": "all",
            "projected": {
                "sources": [
                    {"secret": {"name": "sec"}},
                    {"configMap": {"name": "conf", "items": [{"key": "a", "path": "p/a"}]}},
                    {"downwardAPI": {"items": [told, cpus]}},
                ]
            },
        },
    ]
    mounts: dict[str, str | Object] = {
        "whole": {"mountPath": "/etc/one-file", "subPath": "a"},
        "some": "/etc/some",
        "secret": "/usr/local/hekla-secret",
        "none": "/none",
        "all": "/all",
    }
    script = (
        "cat /etc/one-file; echo; stat -c '%a %n' /etc/some/x/y /etc/some/z; ls -A /none;"
        " cat /usr/local/hekla-secret/s /all/s /all/p/a; echo; cat /all/told/labels; echo;"
        " cat /all/cpus; echo; touch /etc/some/new 2>/dev/null || echo read-only"
    )
    pod = shell("files", script, mounts=mounts, volumes=volumes)
    pod["metadata"]["labels"] = {"app": "x", "b": 'a"'.strip('"')}

    assert done(cluster, pod).splitlines() == [
        "AAA",
        "640 /etc/some/x/y",
        "400 /etc/some/z",
        "SSSSSSAAA",
        'app="x"',
        'b="a"',
        "16",
        "read-only",
    ]
    assert not Path("/etc/some").exists()


def test_a_pod_waits_for_what_its_volumes_need(cluster: LocalCluster) -> None:
    volumes = [
        {"name": "c", "configMap": {"name": "later", "items": [{"key": "k", "path": "k"}]}},
        {"name": "p", "persistentVolumeClaim": {"claimName": "later"}},
    ]
    cluster.make(
        PODS,
        shell("needs", "cat /c/k; ls -A /p", mounts={"c": "/c", "p": "/p"}, volumes=volumes),
    )

    def says(text: str) -> bool:
        found = waiting(cluster, "needs")
        return found.get("reason") == "ContainerCreating" and text in found.get("message", "")

    wait_until(lambda: says('volume "c": configmap "later" not found'), what="the reason")
    path = f"{SPACE}/configmaps"
    cluster.make(path, {"metadata": {"name": "later"}, "data": {"other": "x"}})
    wait_until(lambda: says("references non-existent configmap key: k"), what="the reason")
    cluster.merge(f"{path}/later", {"data": {"k": "here"}})
    wait_until(lambda: says('persistentvolumeclaim "later" not found'), what="the reason")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = f"{SPACE}/persistentvolumeclaims"
    cluster.make(claims, {"metadata": {"name": "later"}, "spec": spec})
    cluster.wait_for_phase("needs", "Succeeded")

    def with_claim(name: str, script: str) -> Object:
        return shell(name, script, mounts={"p": "/p"}, volumes=volumes[1:])

    done(cluster, with_claim("keeps", "echo kept >/p/f"))
    assert done(cluster, with_claim("finds", "cat /p/f")) == "kept\n"
    for name in ("needs", "keeps", "finds"):
        cluster.call("DELETE", f"{PODS}/{name}")
    [folder] = (cluster.home / "claims").iterdir()
    cluster.call("DELETE", f"{claims}/later")
    wait_until(lambda: not folder.exists(), what="the folder to go with its claim")


@pytest.mark.parametrize(
    ("mount", "reason", "says"),
    [
        ({"mountPath": "/proc/nowhere"}, "StartError", "/proc/nowhere"),
        ({"mountPath": "/dev/nowhere"}, "StartError", "/dev/nowhere"),
        ({"mountPath": "/etc/passwd"}, "StartError", "/etc/passwd"),
        ({"mountPath": "/"}, "StartError", "nothing can be mounted at /"),
        ({"mountPath": "/x", "subPath": "link/x"}, "CreateContainerConfigError", "leads out"),
    ],
)
def test_what_cannot_be_mounted_is_told(
    cluster: LocalCluster, mount: Object, reason: str, says: str
) -> None:
    pod = shell("refused", "true", mounts={"d": mount}, volumes=[{"name": "d"}])
    pod["spec"]["initContainers"] = [init("link", "ln -s / /d/link", {"d": "/d"})]
    cluster.make(PODS, pod)

    def told() -> Object:
        status = cluster.pod("refused")["status"].get("containerStatuses", [{"state": {}}])[0]
        found: Object = status["state"].get("terminated") or status["state"].get("waiting", {})
        return found

    def refused() -> Object | None:
        found = told()
        return found if found.get("reason") == reason else None

    assert says in wait_until(refused, what=f"the reason, now {told()}")["message"]
    cluster.call("DELETE", f"{PODS}/refused?gracePeriodSeconds=0")


def test_init_containers_run_in_order_and_sidecars_as_long_as_the_pod(
    cluster: LocalCluster,
) -> None:
    mounts: dict[str, str | Object] = {"w": "/w"}
    pod = shell(
        "steps",
        "echo main >>/w/f; cat /w/f",
        mounts=mounts,
        volumes=[{"name": "w"}],
        restartPolicy="OnFailure",
    )
    pod["spec"]["initContainers"] = [
        init("first", "echo first >>/w/f; test $(grep -c first /w/f) = 2", mounts),
        init(
            "beside",
            "echo beside >>/w/f; trap 'echo asked; exit 0' TERM; while :; do sleep 0.02; done",
            mounts,
            restartPolicy="Always",
        ),
        init(
            "second",
            "until grep -q beside /w/f; do sleep 0.02; done; echo second >>/w/f",
            mounts,
        ),
    ]

    assert done(cluster, pod).split() == ["first", "first", "beside", "second", "main"]

    assert log(cluster, "steps", "beside") == "asked\n"
    statuses = cluster.pod("steps")["status"]["initContainerStatuses"]
    assert [(each["name"], each["restartCount"]) for each in statuses] == [
        ("first", 1),
        ("beside", 0),
        ("second", 0),
    ]
    assert [each["state"]["terminated"]["exitCode"] for each in statuses] == [0, 0, 0]
    assert statuses[0]["lastState"]["terminated"]["exitCode"] == 1


def test_a_pod_that_cannot_be_prepared_fails_and_does_not_start(cluster: LocalCluster) -> None:
    pod = shell("unprepared", "echo ran")
    pod["spec"]["initContainers"] = [init("bad", "exit 3", {}), init("never", "true", {})]

    cluster.make(PODS, pod)

    status = cluster.wait_for_phase("unprepared", "Failed")["status"]
    bad, never = status["initContainerStatuses"]
    assert bad["state"]["terminated"]["exitCode"] == 3
    for each in (never, status["containerStatuses"][0]):
        assert each["state"]["waiting"]["reason"] == "PodInitializing"
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    assert conditions["Initialized"] == "False"


def test_a_pod_that_is_active_for_too_long_is_ended_and_says_so(cluster: LocalCluster) -> None:
    pod = shell(
        "slow", "trap 'exit 0' TERM; while :; do sleep 0.02; done", activeDeadlineSeconds=1
    )
    cluster.make(PODS, pod)

    status = cluster.wait_for_phase("slow", "Failed")["status"]

    assert status["reason"] == "DeadlineExceeded"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


def test_peers_find_each_other_by_name_on_the_same_port(cluster: LocalCluster) -> None:
    port = free_port()
    serve = (
        "import socket; name = socket.gethostname();"
        f" server = socket.create_server((name, {port})); client, _ = server.accept();"
        " client.sendall(f'{name} {server.getsockname()[0]}'.encode())"
    )
    ask = (
        "import socket, time\n"
        "def read(name):\n"
        "    while True:\n"
        f"        try: return socket.create_connection((name, {port})).recv(99).decode()\n"
        "        except OSError: time.sleep(0.02)\n"
        "print(read('w-0.web'), read('web-1'))\n"
        "print(len({each[4] for each in socket.getaddrinfo('web.default.svc', 80, proto=6)}))"
    )
    service = {"clusterIP": "None", "selector": {"app": "web"}}
    cluster.make(f"{SPACE}/services", {"metadata": {"name": "web"}, "spec": service})
    for index in range(2):
        pod = make_pod(
            f"web-{index}",
            sys.executable,
            "-c",
            serve,
            node=f"node-{index}",
            hostname=f"w-{index}",
            subdomain="web",
        )
        pod["metadata"]["labels"] = {"app": "web"}
        cluster.make(PODS, pod)
    addresses = [
        cluster.wait_for_phase(f"web-{index}", "Running")["status"]["podIP"]
        for index in range(2)
    ]
    cluster.make(PODS, make_pod("asks", sys.executable, "-c", ask, node="node-2"))

    cluster.wait_for_phase("asks", "Succeeded")

    assert log(cluster, "asks").splitlines() == [f"w-0 {addresses[0]} w-1 {addresses[1]}", "2"]
    assert len(set(addresses)) == 2
    hosts = cluster.home / "peers" / "default" / "hosts"
    wait_until(lambda: "web" not in hosts.read_text(), what="the names to go with the pods")


FORGETFUL = "env -i setsid sh -c 'exec sleep {0} >/dev/null 2>&1' & env -i setsid sleep {0} &"


def sleepers(seconds: str) -> list[int]:
    wanted = f"sleep\0{seconds}\0".encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "cmdline").read_bytes() == wanted:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_nothing_outlives_its_container_whatever_it_forgets(cluster: LocalCluster) -> None:
    script = FORGETFUL.format(FIRST) + " until test -e go; do sleep 0.02; done"
    made = cluster.make(PODS, shell("forgets", script))
    wait_until(lambda: len(sleepers(FIRST)) == 2, what="the sleepers")

    (cluster.home / "pods" / made["metadata"]["uid"] / "main" / "work" / "go").touch()
    cluster.wait_for_phase("forgets", "Succeeded")

    assert sleepers(FIRST) == []


def test_what_clears_its_environment_is_found_and_ended(cluster: LocalCluster) -> None:
    cluster.make(PODS, make_pod("bare", "env", "-i", "sleep", SECOND, node="node-0"))
    cluster.make(PODS, shell("more", f"{FORGETFUL.format(SECOND)} sleep 1000"))
    wait_until(lambda: len(sleepers(SECOND)) == 3, what="the sleepers")

    assert strays.kill_strays(cluster.home) >= 5

    assert sleepers(SECOND) == []
    cluster.wait_for_phase("bare", "Failed")


def test_without_sandboxes_paths_are_told_and_strays_are_found(plain: LocalCluster) -> None:
    assert "plain processes" in (plain.home / NOTE).read_text()
    script = "echo x >$HEKLA_VOLUME_D/f; ls $HEKLA_VOLUME_D;"
    script += f" {FORGETFUL.format(THIRD)} sleep 1000"
    made = plain.make(PODS, shell("plain", script, mounts={"d": "/d"}, volumes=[{"name": "d"}]))
    wait_until(lambda: len(sleepers(THIRD)) == 2, what="the sleepers")

    folder = plain.home / "pods" / made["metadata"]["uid"] / "volumes" / "d"
    assert log(plain, "plain") == "f\n"
    assert (folder / "f").read_text() == "x\n"
    strays.kill_strays(plain.home)
    assert sleepers(THIRD) == []

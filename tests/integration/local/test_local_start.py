from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from hekla.local.__main__ import main
from hekla.local.runtimes import strays
from tests.support.local_cluster import LocalCluster, make_pod
from tests.support.refusing import refusal


def refused(*flags: str) -> str:
    """What the local cluster says when it does not start."""
    return refusal(main, *flags)


def test_the_kubeconfig_leads_to_the_server_on_loopback(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path).start()
    try:
        kubeconfig = yaml.safe_load(cluster.kubeconfig.read_text())
        server = kubeconfig["clusters"][0]["cluster"]["server"]
        assert server == f"http://127.0.0.1:{cluster.port}"
        assert kubeconfig["current-context"] == kubeconfig["contexts"][0]["name"]
    finally:
        assert cluster.end() == 0


def test_a_second_cluster_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path).start()
    try:
        assert "runs in" in refused(f"--home={tmp_path}")
    finally:
        cluster.end()


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        line = refused(f"--home={tmp_path}", f"--port={port}")

    assert f"cannot listen on 127.0.0.1:{port}" in line
    assert "in use" in line


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([], "HEKLA_LOCAL_HOME"),
        (["--home=/proc/none"], "/proc/none"),
        (["--home=.", "--runtime=magic"], "--runtime"),
        (["--home=.", "--node-cpu=many"], "many"),
        (["--home=.", "--bogus=1"], "--bogus"),
        (["--home=.", "--port=70000"], "70000"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_line(
    flags: list[str], says: str, tmp_path: Path
) -> None:
    here = [flag.replace("--home=.", f"--home={tmp_path}") for flag in flags]

    assert says in refused(*here)


def test_who_is_refused_is_told_so_by_the_exit_code() -> None:
    words = [sys.executable, "-m", "hekla.local"]
    environ = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        words, env=environ, capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{refused()}\n")


def test_a_store_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.db").write_bytes(b"no database at all" * 1000)

    assert "cluster.db" in refused(f"--home={tmp_path}")


def test_pods_of_a_node_that_is_no_more_fail_and_can_be_deleted(tmp_path: Path) -> None:
    cluster = LocalCluster(
        tmp_path, "--nodes=2", "--runtime=simulate", "--simulate-duration=1h"
    )
    pods = "/api/v1/namespaces/default/pods"
    cluster.start()
    cluster.make(pods, make_pod("left", node="node-1"))
    cluster.make(pods, make_pod("nowhere", node="no-such-node"))
    cluster.wait_for_phase("left", "Running")
    cluster.end()

    smaller = LocalCluster(tmp_path, "--nodes=1", "--runtime=simulate").start()
    try:
        assert smaller.wait_for_phase("left", "Failed")["status"]["reason"] == "NodeLost"
        assert smaller.call("GET", "/api/v1/nodes/node-1").code == 404
        assert smaller.phase("nowhere") == "Pending"
        for name in ("left", "nowhere"):
            smaller.call("DELETE", f"{pods}/{name}")
            smaller.wait_for_phase(name, "gone")
    finally:
        smaller.end()


def test_a_log_that_is_followed_does_not_delay_the_stop(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path).start()
    path = "/api/v1/namespaces/default/pods"
    pod = make_pod("talks", "sh", "-c", "echo up; sleep 1000", node="node-0")
    cluster.make(path, pod)
    cluster.wait_for_phase("talks", "Running")
    with cluster.watching(f"{path}/talks/log?follow=true") as followed:
        begun = time.monotonic()
        assert cluster.end() == 0
        assert time.monotonic() - begun < 5, "as long as a call that goes on is waited for"
        assert followed.ended.wait(timeout=20)
    assert strays.kill_strays(tmp_path) > 0


def test_nodes_are_brought_up_to_date_by_the_next_start(tmp_path: Path) -> None:
    LocalCluster(tmp_path, "--nodes=1", "--node-cpu=2").start().end()

    cluster = LocalCluster(tmp_path, "--nodes=2", "--node-cpu=4", "--node-gpus=0").start()
    try:
        nodes = cluster.get("/api/v1/nodes")["items"]
        assert [node["metadata"]["name"] for node in nodes] == ["node-0", "node-1"]
        assert [node["status"]["capacity"]["cpu"] for node in nodes] == ["4", "4"]
        assert "nvidia.com/gpu" not in nodes[0]["status"]["capacity"]
    finally:
        cluster.end()

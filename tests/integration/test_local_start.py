from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.local_cluster import LocalCluster


def refused(*flags: str) -> str:
    """What the local cluster says when it does not start."""
    words = [sys.executable, "-m", "hekla.local", *flags]
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    return line


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


def test_a_store_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.db").write_bytes(b"no database at all" * 1000)

    assert "cluster.db" in refused(f"--home={tmp_path}")


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

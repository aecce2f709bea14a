from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hekla.domain.errors import InvalidError
from hekla.kube.client import KubeClient
from hekla.kube.connect import KubeconfigSource
from hekla.kube.resources import NODES
from tests.support.certificates import Authority, Pair
from tests.support.kube_server import KubeServer


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Pair:
    return authority.issue("server")


@pytest.fixture
def server(authority: Authority, pair: Pair) -> Iterator[KubeServer]:
    with KubeServer(tls=pair, ca=authority.root.certificate) as running:
        running.put("/api/v1/nodes/n1", {})
        yield running


def read(kubeconfig: str, timeout: float = 5) -> tuple[int, str]:
    """How a read ends with this configuration."""
    with KubeClient.start(kubeconfig, isolated=False) as client:
        reply = client.get(NODES, None, "n1", timeout=timeout)
        return reply.status, reply.reason


def inline(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


class TestServer:
    def test_is_believed_by_its_authority(self, server: KubeServer, tmp_path: Path) -> None:
        assert read(server.kubeconfig(tmp_path)) == (200, "")

    def test_is_believed_by_an_authority_given_inline(
        self, server: KubeServer, authority: Authority, tmp_path: Path
    ) -> None:
        data = inline(authority.root.certificate)

        path = server.kubeconfig(tmp_path, cluster={"certificate-authority-data": data})

        assert read(path) == (200, "")

    def test_is_not_believed_without_its_authority(
        self, server: KubeServer, tmp_path: Path
    ) -> None:
        other = Authority(tmp_path, "other").root.certificate

        path = server.kubeconfig(tmp_path, cluster={"certificate-authority": str(other)})

        assert read(path, timeout=0.5) == (0, "Unavailable")

    def test_is_believed_by_any_certificate_if_told_so(
        self, server: KubeServer, tmp_path: Path
    ) -> None:
        path = server.kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": True})

        assert read(path) == (200, "")

    def test_may_have_another_name_in_its_certificate(
        self, authority: Authority, tmp_path: Path
    ) -> None:
        named = authority.issue("named", hosts="DNS:kubernetes.default")
        with KubeServer(tls=named, ca=authority.root.certificate) as server:
            server.put("/api/v1/nodes/n1", {})

            wrong = server.kubeconfig(tmp_path)
            assert read(wrong, timeout=0.5) == (0, "Unavailable")

            right = server.kubeconfig(
                tmp_path, cluster={"tls-server-name": "kubernetes.default"}
            )
            assert read(right) == (200, "")


class TestClient:
    def test_shows_its_certificate(
        self, authority: Authority, pair: Pair, tmp_path: Path
    ) -> None:
        mine = authority.issue("client")
        with KubeServer(
            tls=pair, ca=authority.root.certificate, client_ca=authority.root.certificate
        ) as server:
            server.put("/api/v1/nodes/n1", {})

            by_file = {"client-certificate": str(mine.certificate), "client-key": str(mine.key)}
            assert read(server.kubeconfig(tmp_path, user=by_file)) == (200, "")

            by_data = {
                "client-certificate-data": inline(mine.certificate),
                "client-key-data": inline(mine.key),
            }
            assert read(server.kubeconfig(tmp_path, user=by_data)) == (200, "")

            assert read(server.kubeconfig(tmp_path), timeout=0.5)[0] == 0

    def test_shows_its_token(self, server: KubeServer, tmp_path: Path) -> None:
        server.token = "secret"

        right = server.kubeconfig(tmp_path, user={"token": "secret"})
        assert read(right) == (200, "")

        wrong = server.kubeconfig(tmp_path, user={"token": "wrong"})
        assert read(wrong) == (401, "Unauthorized")

    def test_shows_its_token_to_nobody_on_plain_http(self, tmp_path: Path) -> None:
        with KubeServer() as server:
            server.put("/api/v1/nodes/n1", {})

            assert read(server.kubeconfig(tmp_path, user={"token": "secret"})) == (200, "")

            [asked] = server.seen("GET")
            assert "Authorization" not in asked.headers

    def test_reads_a_token_again_that_is_refused(
        self, server: KubeServer, tmp_path: Path
    ) -> None:
        file = tmp_path / "token"
        file.write_text("first")
        server.token = "first"
        kubeconfig = server.kubeconfig(tmp_path, user={"tokenFile": str(file)})
        with KubeClient.start(kubeconfig, isolated=False) as client:
            assert client.get(NODES, None, "n1").status == 200

            file.write_text("second")
            server.token = "second"

            assert client.get(NODES, None, "n1").status == 200

    @pytest.mark.parametrize("isolated", [False, True], ids=["thread", "process"])
    def test_asks_a_plugin(self, server: KubeServer, tmp_path: Path, *, isolated: bool) -> None:
        server.token = "by-plugin"
        version = "client.authentication.k8s.io/v1"
        answer = {
            "apiVersion": version,
            "kind": "ExecCredential",
            "status": {"token": "by-plugin", "expirationTimestamp": "2199-01-01T00:00:00Z"},
        }
        plugin = {
            "apiVersion": version,
            "command": sys.executable,
            "args": ["-c", f"print({json.dumps(json.dumps(answer))})"],
        }
        kubeconfig = server.kubeconfig(tmp_path, user={"exec": plugin})

        with KubeClient.start(kubeconfig, isolated=isolated) as client:
            assert client.get(NODES, None, "n1").status == 200


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="missing"),
        pytest.param("", id="empty"),
        pytest.param("[1, 2]", id="a list"),
        pytest.param("{", id="no YAML"),
        pytest.param("a: b", id="something else"),
        pytest.param("current-context: x\ncontexts: []\nclusters: []", id="no such context"),
        pytest.param(
            "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
            "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: /no}}]",
            id="an authority that is no file",
        ),
        pytest.param(
            "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
            "clusters: [{name: c, cluster: {server: 'https://h', "
            "certificate-authority-data: bm8gY2VydGlmaWNhdGU=}}]",
            id="an authority that is no certificate",
        ),
        pytest.param(b"\xff\xfe\x00", id="no text"),
    ],
)
def test_a_useless_configuration_is_refused_in_one_line(
    tmp_path: Path, content: str | bytes | None
) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(InvalidError, match=r"no Kubernetes from .*kubeconfig") as refused:
        KubeconfigSource(str(path)).load()

    assert "\n" not in str(refused.value)


def test_without_a_file_the_environment_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KubeServer() as server:
        path = server.kubeconfig(tmp_path)
        monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/missing:{path}")

        assert KubeconfigSource(None).load().server == server.url


def test_without_any_configuration_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/missing")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(InvalidError, match="no Kubernetes from the environment"):
        KubeconfigSource(None).load()


def test_no_key_is_left_in_a_file(
    authority: Authority, pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    user: dict[str, Any] = {
        "client-certificate-data": inline(pair.certificate),
        "client-key-data": inline(pair.key),
    }
    with KubeServer(tls=pair, ca=authority.root.certificate) as server:
        server.put("/api/v1/nodes/n1", {})

        assert read(server.kubeconfig(tmp_path, user=user)) == (200, "")

    assert list(folder.iterdir()) == []

"""Where the API server is and how to be let in, by the official package's rules.

It reads kubeconfig files (several paths too), runs exec plugins, knows tokens, client
certificates and the service account of a pod; we take the plain values from it.
"""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import yaml
from kubernetes import config
from kubernetes.client import Configuration

from hekla.domain.errors import InvalidError
from hekla.kube.connection import Connection, tls_context


class KubeconfigSource:
    """Connections by one kubeconfig, or by what the environment offers."""

    def __init__(self, kubeconfig: str | None) -> None:
        self._kubeconfig = kubeconfig
        self._lock = threading.Lock()
        self._configuration: Configuration | None = None

    def load(self) -> Connection:
        """Read everything anew; runs exec plugins.

        Raises:
            InvalidError: there is no configuration, or it is of no use.
        """
        with self._lock:
            try:
                self._configuration, connection = _read(self._kubeconfig)
                if connection.secure:
                    tls_context(connection)  # tells now what would fail later, and elsewhere
            except _BAD as error:
                where = self._kubeconfig or "the environment"
                why = " ".join(str(error).split()) or type(error).__name__
                raise InvalidError(f"no Kubernetes from {where}: {why}") from error
            return connection

    def authorization(self) -> str | None:
        """The header as of now: a token about to expire is fetched again."""
        if self._configuration is None:
            return self.load().authorization
        with self._lock:
            return self._configuration.get_api_key_with_prefix("BearerToken")


_BAD: Final = (
    config.ConfigException,
    yaml.YAMLError,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
)
"""What the official package raises over a file that is no kubeconfig."""


def _read(kubeconfig: str | None) -> tuple[Configuration, Connection]:
    found = Configuration()
    paths = os.pathsep.join(_default_paths()) if kubeconfig is None else kubeconfig
    if kubeconfig is None and not any(Path(path).exists() for path in _default_paths()):
        config.load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
        return found, _connection(found)
    # Inline keys and certificates are written to files: have them where we can remove them.
    with tempfile.TemporaryDirectory(prefix="hekla-kube-") as folder:
        config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=paths, client_configuration=found, temp_file_path=folder
        )
        return found, _connection(found)


def _default_paths() -> list[str]:
    named = os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    return [path for path in named.split(os.pathsep) if path]


def _connection(found: Configuration) -> Connection:
    def text(path: str | None) -> str | None:
        return Path(path).read_text(encoding="utf-8") if path else None

    host = urlsplit(found.host).hostname or ""
    return Connection(
        server=found.host.rstrip("/"),
        authorization=found.get_api_key_with_prefix("BearerToken"),
        verify=found.verify_ssl,
        ca=text(found.ssl_ca_cert),
        certificate=text(found.cert_file),
        key=text(found.key_file),
        server_name=found.tls_server_name,
        proxy=None if proxy_bypass(host) else found.proxy,
    )

"""The socket, the lock on the folder, the kubeconfig, and the life of the process."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import resource
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import uvicorn
import yaml

from hekla.local.cluster import Cluster
from hekla.local.settings import Settings
from hekla.local.storage.journal import Journal

HOST: Final = "127.0.0.1"
_BACKLOG: Final = 2048
_KEEP_ALIVE: Final = 120
_DRAIN: Final = 5
_FILES: Final = 65_536


class StartError(Exception):
    """The local cluster cannot start; the text says why in one line."""


def lock(home: Path) -> IO[bytes]:
    """Keep a second local cluster off the same folder, for as long as the file is open.

    Raises:
        StartError: one runs there already.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        file = (home / "lock").open("ab")
    except OSError as error:
        raise StartError(f"cannot use {home}: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise StartError(f"a local cluster runs in {home} already") from error
    return file


def listen(port: int) -> socket.socket:
    """A socket on loopback.

    Raises:
        StartError: the port is in use, or may not be used.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except (OSError, OverflowError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or str(error)
        raise StartError(f"cannot listen on {HOST}:{port}: {why}") from error
    listener.listen(_BACKLOG)
    return listener


def write_kubeconfig(path: Path, url: str) -> None:
    """Write what kubectl and the clients need to reach ``url``."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "hekla", "cluster": {"server": url}}],
        "users": [{"name": "hekla", "user": {}}],
        "contexts": [
            {
                "name": "hekla",
                "context": {"cluster": "hekla", "user": "hekla", "namespace": "default"},
            }
        ],
        "current-context": "hekla",
    }
    draft = path.with_suffix(".new")
    draft.write_text(yaml.safe_dump(config, sort_keys=False))
    draft.replace(path)


def allow_many_files() -> None:
    """Take as many open files as the system gives: each container and connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def serve(settings: Settings, journal: Journal, listener: socket.socket) -> None:
    """Run until SIGTERM or SIGINT."""
    cluster = Cluster(settings, journal)
    await cluster.start()
    config = uvicorn.Config(
        cluster.app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_DRAIN,
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.should_exit = True
        cluster.close_streams()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    url = f"http://{HOST}:{listener.getsockname()[1]}"
    write_kubeconfig(settings.home / "kubeconfig", url)
    announced = loop.create_task(_announce(server, url, settings))
    try:
        await server.serve(sockets=[listener])
    finally:
        announced.cancel()
        await cluster.stop()


class _Server(uvicorn.Server):
    """uvicorn, but the signals are ours."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _announce(server: uvicorn.Server, url: str, settings: Settings) -> None:
    while not server.started:
        await asyncio.sleep(0.01)
    line = f"local cluster ready: {url} (kubeconfig {settings.home / 'kubeconfig'})\n"
    with contextlib.suppress(OSError):
        os.write(1, line.encode())

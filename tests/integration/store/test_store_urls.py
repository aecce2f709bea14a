"""Postgres is found by every form of URL that people have: socket, TCP, password, options."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import text

from hekla.domain.errors import UnavailableError
from hekla.store import incarnation, migrate
from hekla.store.database import Database
from hekla.store.nudge import Nudge
from tests.support.cut import Proxy
from tests.support.postgres import URL_VARIABLE, Server
from tests.support.store import value
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(
    URL_VARIABLE in os.environ, reason="writes the server's pg_hba.conf; all tests use one form"
)

USER = "asked"
PASSWORD = "p:w/d@1 %"
SECRET = quote(PASSWORD, safe="")


@pytest.fixture(scope="module", autouse=True)
def asked(postgres: Server) -> Iterator[None]:
    """A user who has to say a password."""
    database = Database(postgres.url("postgres"), pool_size=1)
    with database.transaction() as session:
        session.execute(text(f"create role {USER} superuser login password '{PASSWORD}'"))
        rules = Path(value(session, "show hba_file"))
        before = rules.read_text()
        rules.write_text(f"local all {USER} scram-sha-256\n{before}")
        session.execute(text("select pg_reload_conf()"))
    wait_until(lambda: _refused(postgres), what="the rule to be in force")
    yield
    with database.transaction() as session:
        rules.write_text(before)
        session.execute(text(f"drop role {USER}"))
        session.execute(text("select pg_reload_conf()"))
    database.close()


def _refused(postgres: Server) -> bool:
    wrong = Database(postgres.url("postgres", user=USER), pool_size=1)
    try:
        with wrong.transaction() as session:
            session.execute(text("select 1"))
    except UnavailableError:
        return True
    finally:
        wrong.close()
    return False


FORMS = {
    "socket": "postgresql://{user}:{secret}@/{name}?host={folder}",
    "tcp": "postgresql://{user}:{secret}@127.0.0.1:{port}/{name}",
    "short scheme": "postgres://{user}:{secret}@127.0.0.1:{port}/{name}",
    "with a driver": "postgresql+psycopg://{user}:{secret}@127.0.0.1:{port}/{name}",
    "options": (
        "postgresql://{user}:{secret}@127.0.0.1:{port}/{name}"
        "?sslmode=disable&application_name=hekla&connect_timeout=3"
        "&options=-c%20work_mem%3D8MB"
    ),
    "all in the query": "postgresql:///{name}?host=127.0.0.1&port={port}&user={user}&password={secret}",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_store_and_its_hints_are_reached(
    postgres: Server, database: Database, form: str
) -> None:
    name = str(database.engine.url.database)
    assert isinstance(postgres.address, Path)
    with Proxy.before(postgres.address) as proxy:
        url = FORMS[form].format(
            user=USER,
            secret=SECRET,
            folder=postgres.address.parent,
            port=proxy.port,
            name=name,
        )
        asking = Database(url, pool_size=1)
        migrate.check(asking)
        incarnation.settle(asking)
        with asking.transaction() as session:
            assert value(session, "select current_user") == USER
            if "options" in form:
                assert value(session, "show work_mem") == "8MB"
                assert value(session, "show application_name") == "hekla"
        assert migrate.migrate(url) == migrate.head()
        nudge = Nudge(url)
        with nudge.running():
            wait_until(lambda: nudge.patience > 0.5, what="the process to hear itself")
        asking.close()


def test_a_wrong_password_is_one_line_without_it(postgres: Server) -> None:
    wrong = Database(postgres.url("postgres", user=USER), pool_size=1)

    with pytest.raises(UnavailableError) as caught, wrong.transaction() as session:
        session.execute(text("select 1"))

    assert f'password authentication failed for user "{USER}"' in str(caught.value)
    assert "\n" not in str(caught.value)
    wrong.close()

"""Statements that a connection knows already: planned once, not each time they are sent.

Reading and planning a statement takes the server several times as long as executing it: five
that a look at a job asks took 395 microseconds, and take 80 when they are prepared. They are
prepared by SQL, and executed by name, so that many still travel as one text.

A prepared statement belongs to a connection of the server. Through a proxy that gives each
transaction another one, nothing is prepared: such a proxy is known by the process id it tells,
which is no server's. One that deceives us is found out by a name that the server does not know,
or knows already; names say what they stand for, so that no other statement is ever executed.

The server infers what type a value has from its place in the statement. Where that leaves a
choice (a time minus what?) the statement says it: ``cast(:within as interval)``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import MutableMapping
from typing import Any, Final, NamedTuple

import psycopg
from sqlalchemy import ClauseElement, Dialect
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

SETTINGS: Final = (
    "plan_cache_mode = force_generic_plan",
    # A plan is kept for a while, and should hold while tables grow: by indexes, which are hot.
    "enable_seqscan = off",
    "random_page_cost = 1.1",
)
PLANS_SECONDS: Final = 10.0
"""For so long plans are kept: what was planned for a small table is bad for a large one."""
FORGET_PLANS: Final = "discard plans"
STALE: Final = frozenset({"26000", "42P05"})
"""SQLSTATEs that say that the connection's server is not the one it was."""
CHANGED: Final = "cached plan must not change result type"
"""What a server says whose tables were changed by a migration."""

_DIALECT: Final[Dialect] = PGDialect_psycopg()  # type: ignore[no-untyped-call]
_PARAMETER: Final = re.compile(r"%\((\w+)\)s|%%")
_READY: Final = "prepared"
_PLANNED_AT: Final = "planned at"

Info = MutableMapping[Any, Any]
"""What is remembered of a connection for as long as it lives."""


class Text(NamedTuple):
    """A statement as it is sent, with ``%(name)s`` where a value goes."""

    plain: str
    name: str
    declaration: str
    execution: str


def configure(connection: psycopg.Connection[Any], info: Info) -> None:
    """Prepare statements on a new connection, if it leads to a server and to no proxy."""
    [pid] = connection.execute("select pg_backend_pid()").fetchone() or [None]
    if pid != connection.info.backend_pid:
        return
    connection.execute(";".join(f"set {setting}" for setting in SETTINGS))
    info[_READY] = set()


def ready(connection: psycopg.Connection[Any], info: Info) -> set[str] | None:
    """The names that a connection knows, or None where nothing is prepared."""
    if _READY not in info:
        return None
    known: set[str] | None = info[_READY]
    if known is None:
        rows = connection.execute("select name from pg_prepared_statements where from_sql")
        known = info[_READY] = {name for [name] in rows}
    return known


def plans_are_old(info: Info, now: float) -> bool:
    """Whether the connection should forget its plans; then they count as new again.

    ``now`` is in seconds, by the monotonic clock.
    """
    planned_at: float = info.get(_PLANNED_AT, float("-inf"))
    old = now - planned_at > PLANS_SECONDS
    if old:
        info[_PLANNED_AT] = now
    return old


def doubt(info: Info) -> None:
    """Have the server be asked what it knows: some of what was sent was not executed."""
    if _READY in info:
        info[_READY] = None


def is_stale(error: psycopg.Error) -> bool:
    """Whether what a connection knows is of no use any more."""
    return error.sqlstate in STALE or CHANGED in str(error)


_texts: dict[ClauseElement, Text] = {}


def text_of(statement: ClauseElement) -> Text:
    """What is sent; statements are constants of modules, each compiled once."""
    known = _texts.get(statement)
    if known is None:
        known = _texts[statement] = _compiled(str(statement.compile(dialect=_DIALECT)))
    return known


def _compiled(plain: str) -> Text:
    order: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        name = found.group(1)
        return "%%" if name is None else f"${order.setdefault(name, len(order) + 1)}"

    numbered_text = _PARAMETER.sub(numbered, plain)
    digest = hashlib.sha256(numbered_text.encode()).hexdigest()[:20]
    name = f"hekla_{digest}"
    values = ", ".join(f"%({parameter})s" for parameter in order)
    return Text(
        plain=plain,
        name=name,
        declaration=f"prepare {name} as {numbered_text.replace('%%', '%')}",
        execution=f"execute {name}{f'({values})' if values else ''}",
    )

"""How the database itself is: for people who ask what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import text

from hekla.store.database import APPLICATION, Session

SETTINGS: Final = ("fsync", "full_page_writes", "synchronous_commit", "autovacuum")
"""Settings that say whether what was answered may be lost, or the tables swell."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Whoever keeps old rows from being removed."""

    who: str
    """``pid 123 (psql, idle in transaction)``."""
    seconds: float
    pid: int | None
    """None if it is no connection."""


@dataclass(frozen=True, slots=True)
class Health:
    """The server and the database as they are now."""

    version: str
    version_number: int
    """As Postgres counts: 160004 is 16.4."""
    settings: Mapping[str, str]
    replica: bool
    """It takes no writes."""
    now: datetime
    database: str
    database_bytes: int
    connections: int
    """In use by clients, in all databases."""
    most_connections: int
    """That clients may have."""
    ours: int
    """Other connections of Hekla's to this database."""
    oldest: Holder | None


_SERVER = text("""
    select current_setting('server_version') as version,
           current_setting('server_version_num')::int as version_number,
           pg_is_in_recovery() as replica,
           current_database() as database,
           pg_database_size(current_database()) as database_bytes,
           current_setting('max_connections')::int
               - current_setting('superuser_reserved_connections')::int
               - coalesce(current_setting('reserved_connections', true)::int, 0)
               as most_connections,
           (select count(*) from pg_stat_activity where backend_type = 'client backend')
               as connections,
           (select count(*) from pg_stat_activity
             where datname = current_database() and application_name = :application
               and pid <> pg_backend_pid()) as ours
""")
_SETTINGS = text("select name, setting from pg_settings where name = any (:names)")
_OLDEST = text("""
    select pid, who, seconds from (
        select pid,
               format('pid %s (%s, %s)', pid, coalesce(nullif(application_name, ''), usename),
                      state) as who,
               extract(epoch from clock_timestamp() - xact_start) as seconds
          from pg_stat_activity
         where (backend_xmin is not null or backend_xid is not null)
           and xact_start is not null and pid <> pg_backend_pid()
        union all
        select null, format('prepared transaction %L', gid),
               extract(epoch from clock_timestamp() - prepared)
          from pg_prepared_xacts
    ) as holders order by seconds desc limit 1
""")


def look(session: Session) -> Health:
    """Ask the server about itself. The time is taken last, so that it is fresh."""
    server = session.execute(_SERVER, {"application": APPLICATION}).one()
    settings = session.execute(_SETTINGS, {"names": list(SETTINGS)}).all()
    oldest = session.execute(_OLDEST).one_or_none()
    return Health(
        version=server.version,
        version_number=server.version_number,
        settings={row.name: row.setting for row in settings},
        replica=server.replica,
        database=server.database,
        database_bytes=server.database_bytes,
        connections=server.connections,
        most_connections=server.most_connections,
        ours=server.ours,
        oldest=None
        if oldest is None
        else Holder(oldest.who, float(oldest.seconds), oldest.pid),
        now=session.execute(text("select clock_timestamp()")).scalar_one(),
    )

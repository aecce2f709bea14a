"""What alembic runs, in the transaction of ``hekla.store.migrate``.

A migration gives up rather than waits long for a table that is in use.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, text

from hekla.store import flow_schema, own_schema, schema  # noqa: F401 - the tables
from hekla.store.tables import Base

connection: Connection = context.config.attributes["connection"]
connection.execute(text("set local lock_timeout = '5s'"))
context.configure(connection=connection, target_metadata=Base.metadata)
with context.begin_transaction():
    context.run_migrations()

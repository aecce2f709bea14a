"""What alembic runs: each migration in one transaction that gives up rather than waits long."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, text

from hekla.store.schema import Base

connection: Connection = context.config.attributes["connection"]
connection.execute(text("set lock_timeout = '5s'"))
connection.execute(text("set statement_timeout = '10min'"))
context.configure(
    connection=connection, target_metadata=Base.metadata, transaction_per_migration=True
)
with context.begin_transaction():
    context.run_migrations()

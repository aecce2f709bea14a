"""Which store this is. A restored copy is another one, though its rows say otherwise.

Cursors and request ids name the incarnation. What was handed out by the store that the copy
was made of, and has since gone another way, must not be taken for ours.
"""

from __future__ import annotations

import logging

from sqlalchemy import text

from hekla.store.database import Database, Session

log = logging.getLogger(__name__)

# A dump that was read back has another server or another database; a server that was
# promoted, or restored from its log, has another timeline. The last checkpoint's timeline
# would be the old one for minutes after a promotion; that of the log is not.
_SYSTEM = text("""
    select s.system_identifier || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
           || '/' || d.oid
      from pg_control_system() s, pg_database d
     where d.datname = current_database()
""")


def settle(database: Database) -> bool:
    """Give a restored copy an incarnation of its own; return whether it was one.

    Whoever settles first does it for all. Cursors end, and watchers list again.

    Raises:
        UnavailableError: Postgres is away.
    """
    with database.transaction() as session:
        system = str(session.execute(_SYSTEM).scalar_one())
        known = session.execute(text("select system from store")).scalar_one()
        if known == system:
            return False
        return _move(session, system)


def _move(session: Session, system: str) -> bool:
    known = str(session.execute(text("select system from store for update")).scalar_one())
    if known == system:
        return False
    restored = known != ""
    session.execute(
        text(
            "update store set system = :system, incarnation = case when :restored"
            " then gen_random_uuid() else incarnation end"
        ),
        {"system": system, "restored": restored},
    )
    if restored:
        log.warning("the store is a restored copy", extra={"was": known, "is": system})
    return restored

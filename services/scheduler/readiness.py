"""What must be so before this process may lead, or count as ready."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from hekla.domain.errors import DomainError
from hekla.store import migrate
from hekla.store.database import Database
from services.scheduler.cache import Cache
from services.scheduler.sources import Stream


class Readiness:
    """Answers why not, or None."""

    def __init__(
        self,
        database: Database,
        cache: Cache,
        streams: Sequence[Stream],
        alone: Callable[[], str | None],
    ) -> None:
        """See the class; ``alone`` tells who else may schedule this cluster, or None."""
        self.alone = alone
        self._database = database
        self._cache = cache
        self._streams = streams
        self._lock = threading.Lock()
        self._schema_known = False

    def schema(self) -> str | None:
        """Whether the database has the schema this code knows; once it had, it has."""
        with self._lock:
            if not self._schema_known:
                try:
                    migrate.check(self._database)
                except DomainError as error:
                    return str(error)
                self._schema_known = True
        return None

    def filled(self) -> str | None:
        """Whether the cache holds all there is."""
        missing = self._cache.missing()
        return f"waiting for all {', '.join(missing)}" if missing else None

    def fresh(self) -> str | None:
        """Whether the controller tells of what happens."""
        return next(filter(None, (stream.problem() for stream in self._streams)), None)

    def to_decide(self) -> str | None:
        """What must stay so while it leads."""
        return self.alone() or self.fresh()

    def to_lead(self) -> str | None:
        """All of it."""
        return self.alone() or self.filled() or self.fresh() or self.schema()

"""Keeps certificate and registration fresh, and starts the server once there is one.

API servers must believe a new authority before they see what it signed. So a certificate of
an authority that they were not told of is served only in the pass after they were.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from hekla.domain.errors import DomainError
from hekla.telemetry import metrics
from services.webhook.https import authority
from services.webhook.https.keeping import Keeper, Material
from services.webhook.https.registration import Registrar
from services.webhook.https.server import TlsServer

log = logging.getLogger(__name__)


class Upkeep:
    """One look after the other, in one thread."""

    def __init__(
        self,
        keeper: Keeper,
        server: TlsServer,
        registrar: Registrar | None,
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._keeper = keeper
        self._server = server
        self._registrar = registrar
        self._now = now
        self._served: Material | None = None
        self._registered = registrar is None
        self._problem: str | None = "no certificate yet"

    def problem(self) -> str | None:
        """Why API servers cannot be answered, or None.

        What was registered once stays so: that it cannot be looked after now is in the log.
        """
        if self._served is not None and not self._server.running:
            return "the HTTPS server has ended"
        if self._served is None or not self._registered:
            return self._problem
        return None

    def look(self) -> bool:
        """Look once; there is never more to do at once.

        Raises:
            DomainError: it could not be done now; what is served stays.
        """
        try:
            return self._look(self._now())
        except DomainError as error:
            self._problem = str(error)
            metrics.webhooks_registered.set(0)
            raise

    def _look(self, now: datetime) -> bool:
        found = self._keeper.load(now)
        if self._served is None or authority.ends(self._served.served.certificate) <= now:
            self._serve(found)
        believed = True
        if self._registrar is not None:
            believed = self._registrar.keep(found.bundle, now)
            if not self._registered:
                log.info("registered with the API server")
            self._registered = True
            metrics.webhooks_registered.set(1)
        if self._served != found and believed:
            self._serve(found)
        self._problem = None
        return False

    def _serve(self, found: Material) -> None:
        self._server.use(found.served)
        self._served = found
        ends = authority.ends(found.served.certificate)
        metrics.certificate_ends.set(ends.timestamp())
        log.info("serving a certificate", extra={"ends": ends.isoformat()})

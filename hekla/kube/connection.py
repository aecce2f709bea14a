"""How to reach an API server, as plain values, and what TLS makes of them."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Connection:
    """All that is needed to open connections; may cross to a process."""

    server: str
    """``https://host:port``, maybe with a path, without a slash at the end."""
    authorization: str | None = field(default=None, repr=False)
    """The header; only sent over TLS."""
    verify: bool = True
    ca: str | None = field(default=None, repr=False)
    """PEM; None: the system's."""
    certificate: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    server_name: str | None = None
    proxy: str | None = None

    @property
    def secure(self) -> bool:
        """Whether it is TLS."""
        return self.server.startswith("https://")


class Source(Protocol):
    """Where connections come from. May block: plugins run."""

    def load(self) -> Connection:
        """Read everything anew."""

    def authorization(self) -> str | None:
        """The header as of now."""


def tls_context(connection: Connection) -> ssl.SSLContext:
    """What to believe and what to show, for OpenSSL.

    Raises:
        OSError: a certificate or key is none, or they do not belong together.
    """
    context = ssl.create_default_context(cadata=connection.ca)
    if not connection.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if connection.certificate and connection.key:
        with tempfile.NamedTemporaryFile() as file:  # OpenSSL reads keys from files only
            file.write(f"{connection.certificate}\n{connection.key}".encode())
            file.flush()
            context.load_cert_chain(file.name)
    return context

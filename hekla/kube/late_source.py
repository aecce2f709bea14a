"""Connections by a kubeconfig that nobody may ever ask for.

What reads those (``connect``) takes long to import, and most I/O processes never ask.
"""

from __future__ import annotations

from hekla.kube.connection import Connection, Source


class LateSource:
    """A source by a kubeconfig that is made when it is first asked."""

    def __init__(self, kubeconfig: str | None) -> None:
        self._kubeconfig = kubeconfig
        self._made: Source | None = None

    def load(self) -> Connection:
        """Read everything anew."""
        return self._source().load()

    def authorization(self) -> str | None:
        """The header as of now."""
        return self._source().authorization()

    def _source(self) -> Source:
        if self._made is None:
            from hekla.kube.connect import KubeconfigSource  # noqa: PLC0415 - as said above

            self._made = KubeconfigSource(self._kubeconfig)
        return self._made

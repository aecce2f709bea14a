"""Where certificates come from: files that somebody else keeps fresh, or a Secret of ours.

All replicas read the same Secret, so all show the same certificate. Whoever finds none, or one
that is due, makes it; who comes second finds that it is there.
"""

from __future__ import annotations

import base64
import binascii
import ssl
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from hekla.domain.errors import InvalidError, PreconditionError, UnavailableError
from hekla.kube.client import KubeClient
from hekla.kube.errors import error_for
from hekla.kube.requests import Patch
from hekla.kube.resources import SECRETS
from services.webhook.https import authority
from services.webhook.https.authority import Kept, Served
from services.webhook.https.registration import LABELS

BUNDLE: Final = "ca.crt"
AUTHORITY_KEY: Final = "ca.key"
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
TIMEOUT: Final = 10.0
_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class Material:
    """What to show, and whom API servers are to believe; None: whom they believe anyway."""

    served: Served
    bundle: str | None


class Keeper(Protocol):
    """Knows the certificate."""

    def load(self, now: datetime) -> Material:
        """The one to be served as of ``now``.

        Raises:
            DomainError: there is none, for the reason given.
        """


@dataclass(frozen=True, slots=True)
class FileKeeper:
    """Reads what somebody else puts into files."""

    certificate: Path
    key: Path
    authorities: Path | None

    def load(self, now: datetime) -> Material:
        """The files as they are now.

        Raises:
            InvalidError: one cannot be read, or they do not belong together.
        """
        served = Served(_text(self.certificate), _text(self.key))
        try:
            install(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), served)
            authority.ends(served.certificate)
        except (OSError, ValueError) as error:
            why = f"{self.certificate} and {self.key} are no certificate and its key: {error}"
            raise InvalidError(why) from error
        if self.authorities is None:
            return Material(served, None)
        bundle = _text(self.authorities)
        try:
            authority.authorities_in(bundle)
        except ValueError as error:
            raise InvalidError(f"{self.authorities} has no certificate: {error}") from error
        return Material(served, bundle)


class SecretKeeper:
    """Shares a Secret with the other replicas, and makes what is missing in it."""

    def __init__(
        self, kube: KubeClient, namespace: str, name: str, hosts: Collection[str]
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._hosts = frozenset(hosts)

    def load(self, now: datetime) -> Material:
        """What the Secret holds, after making anew what is due.

        Raises:
            PreconditionError: the Secret is somebody else's.
            DomainError: the API server does not let us, or is away.
        """
        for _ in range(_ATTEMPTS):
            reply = self._kube.get(SECRETS, self._namespace, self._name, timeout=TIMEOUT)
            found = (
                None if reply.status == 404 and reply.reason == "NotFound" else reply.found()
            )
            kept = _kept(found)
            fresh = authority.renewed(kept, self._hosts, now)
            if fresh is None:
                assert kept is not None
                return Material(kept.served, kept.bundle)
            self._store(fresh, found)
        raise UnavailableError(f"the Secret {self._name} is changed by others all the time")

    def _store(self, fresh: Kept, found: Mapping[str, Any] | None) -> None:
        """Write, unless somebody else was quicker; which was right is read next."""
        if found is None:
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/tls",
                "metadata": {
                    "name": self._name,
                    "namespace": self._namespace,
                    "labels": dict(LABELS),
                },
                "data": _data(fresh),
            }
            [reply] = self._kube.create_many(SECRETS, [secret], timeout=TIMEOUT)
        else:
            metadata = found["metadata"]
            if not LABELS.items() <= (metadata.get("labels") or {}).items():
                raise PreconditionError(
                    f"the Secret {self._namespace}/{self._name} is not ours, and has no"
                    " certificate that we could use: name another, or give files"
                )
            body = {
                "metadata": {"resourceVersion": metadata["resourceVersion"]},
                "data": _data(fresh),
            }
            patch = Patch(SECRETS, self._namespace, self._name, body)
            [reply] = self._kube.patch_many([patch], timeout=TIMEOUT)
        if not reply.ok and reply.status not in {404, 409}:
            raise error_for(reply.status, reply.reason, reply.message)
        if reply.status == 404 and found is None:
            raise PreconditionError(f"there is no namespace {self._namespace}: {reply.message}")


def install(context: ssl.SSLContext, served: Served) -> None:
    """Let ``context`` show a certificate.

    Raises:
        OSError: it is none, or the key is another's.
    """
    with tempfile.NamedTemporaryFile() as file:  # OpenSSL reads keys from files only
        file.write(f"{served.certificate}\n{served.key}".encode())
        file.flush()
        # A key with a pass phrase would have it asked for at the terminal.
        context.load_cert_chain(file.name, password=_no_pass_phrase)


def _no_pass_phrase() -> str:
    raise ValueError("the key has a pass phrase")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidError(f"{path} is not PEM") from error


def _data(kept: Kept) -> dict[str, str]:
    texts = {
        BUNDLE: kept.bundle,
        AUTHORITY_KEY: kept.authority_key,
        CERTIFICATE: kept.served.certificate,
        KEY: kept.served.key,
    }
    return {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}


def _kept(secret: Mapping[str, Any] | None) -> Kept | None:
    """What a Secret holds; whatever is missing in it is empty."""
    if secret is None:
        return None
    data = secret.get("data")
    texts = {}
    for name in (BUNDLE, AUTHORITY_KEY, CERTIFICATE, KEY):
        text = data.get(name) if isinstance(data, dict) else None
        try:
            texts[name] = base64.b64decode(text or "").decode()
        except (binascii.Error, ValueError, TypeError):
            texts[name] = ""
    return Kept(texts[BUNDLE], texts[AUTHORITY_KEY], Served(texts[CERTIFICATE], texts[KEY]))

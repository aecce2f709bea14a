"""Asks webhooks over HTTPS: certificates are verified, connections are kept."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Collection
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from hekla.domain import selector
from hekla.domain.errors import InvalidError
from hekla.local.kinds.registry import PODS, SERVICES, Object
from hekla.local.rules import budgets
from hekla.local.storage.memory import Storage
from hekla.local.webhooks.hooks import Hook, Service
from hekla.local.webhooks.reviews import CallError

ANSWER_LIMIT: Final = 16 * 2**20
_TOGETHER: Final = 100
"""Connections to one address."""
_IDLE: Final = 90.0
_SHOWN: Final = 300


class Place(NamedTuple):
    """Where a request goes."""

    url: str
    shown: str
    """As messages give it."""
    host: str | None
    """The name that is expected of the certificate, where it is not the URL's."""


Finder = Callable[[Service], str]
"""Gives the ``host:port`` that a Service leads to. Raises ``CallError`` where there is none."""


class Caller:
    """The connections to webhooks. Belongs to one event loop."""

    def __init__(self, find: Finder) -> None:
        self._find = find
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str | None, ssl.SSLContext] = {}

    async def ask(self, hook: Hook, question: bytes) -> bytes:
        """What the webhook answers.

        Raises:
            CallError: it does not, in its time.
        """
        shown = _shown(hook)
        try:
            async with asyncio.timeout(hook.seconds):
                return await self._asked(hook, self._place(hook), question)
        except TimeoutError:
            why = "context deadline exceeded"
        except aiohttp.ClientConnectorCertificateError as error:
            why = f"tls: failed to verify certificate: {_reason(error.certificate_error)}"
        except aiohttp.ClientSSLError as error:
            why = f"tls: {_reason(error.os_error)}"
        except aiohttp.ClientConnectorError as error:
            why = f"dial tcp {error.host}:{error.port}: connect: {_reason(error.os_error)}"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            why = str(error) or type(error).__name__
        raise CallError(f'failed to call webhook: Post "{shown}": {why}')

    def forget(self, kept: Collection[str | None]) -> None:
        """Drop what is known of certificates but for those of ``kept``."""
        for bundle in [bundle for bundle in self._contexts if bundle not in kept]:
            del self._contexts[bundle]

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _asked(self, hook: Hook, place: Place, question: bytes) -> bytes:
        context = self._context(hook.bundle)
        try:
            return await self._post(place, context, question)
        except (aiohttp.ServerDisconnectedError, ConnectionResetError):
            # A connection that was kept, and that the other side closed meanwhile.
            return await self._post(place, context, question)

    async def _post(self, place: Place, context: ssl.SSLContext, question: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if place.host is not None:
            headers["Host"] = place.host
        async with self._connections().post(
            place.url,
            data=question,
            headers=headers,
            ssl=context,
            server_hostname=place.host,
            allow_redirects=False,
        ) as response:
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > ANSWER_LIMIT:
                    response.close()
                    why = f"the answer is longer than {ANSWER_LIMIT} bytes"
                    raise CallError(f"failed to call webhook: {why}")
            if not 200 <= response.status <= 206:
                text = body[:_SHOWN].decode(errors="replace").strip()
                raise CallError(
                    f"failed to call webhook: the server answered {response.status} "
                    f"{response.reason or ''}".rstrip()
                    + (f": {text}" if text else "")
                )
            return bytes(body)

    def _place(self, hook: Hook) -> Place:
        shown = _shown(hook)
        if isinstance(hook.target, str):
            return Place(shown, shown, None)
        address = self._find(hook.target)
        url = f"https://{address}{hook.target.path}?timeout={hook.seconds}s"
        return Place(url, shown, hook.target.host)

    def _context(self, bundle: str | None) -> ssl.SSLContext:
        context = self._contexts.get(bundle)
        if context is None:
            try:
                context = ssl.create_default_context(cadata=bundle)
            except (ssl.SSLError, ValueError) as error:
                why = f"unable to load root certificates: {_reason(error)}"
                raise CallError(f"failed to call webhook: {why}") from error
            self._contexts[bundle] = context
        return context

    def _connections(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0, limit_per_host=_TOGETHER, keepalive_timeout=_IDLE
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session


def finder(storage: Storage) -> Finder:
    """Finds the pods behind Services, as there is nobody here who forwards."""

    def find(service: Service) -> str:
        named = f'service "{service.name}" in namespace "{service.namespace}"'
        entry = storage.get(SERVICES, service.namespace, service.name)
        if entry is None:
            raise CallError(f"failed to call webhook: {named} not found")
        spec = entry.object().get("spec", {})
        if spec.get("type") == "ExternalName":
            return f"{spec.get('externalName')}:{service.port}"
        ports = [port for port in spec.get("ports") or [] if port.get("port") == service.port]
        if not ports:
            raise CallError(f"failed to call webhook: {named} has no port {service.port}")
        for pod in _pods(storage, service.namespace, spec.get("selector")):
            number = _number(pod, ports[0].get("targetPort", service.port))
            if number is not None:
                return f"{pod['status']['podIP']}:{number}"
        raise CallError(f"failed to call webhook: no endpoints available for {named}")

    return find


def _pods(storage: Storage, namespace: str, wanted: object) -> list[Object]:
    """The pods that are ready to serve."""
    if not isinstance(wanted, dict) or not wanted:
        return []
    try:
        chosen = selector.from_object({"matchLabels": wanted})
    except InvalidError:
        return []
    pods = [
        entry.object()
        for entry in storage.select(PODS, namespace)
        if not entry.deleting and chosen.matches(entry.labels)
    ]
    return [pod for pod in pods if budgets.ready(pod) and pod["status"].get("podIP")]


def _number(pod: Object, port: object) -> int | None:
    if isinstance(port, int):
        return port
    for container in pod["spec"]["containers"]:
        for each in container.get("ports") or []:
            if each.get("name") == port:
                number: int = each["containerPort"]
                return number
    return None


def _shown(hook: Hook) -> str:
    """The address as the registration gives it."""
    if isinstance(hook.target, str):
        path = "" if urlsplit(hook.target).path else "/"
        return f"{hook.target}{path}?timeout={hook.seconds}s"
    service = hook.target
    return f"https://{service.host}:{service.port}{service.path}?timeout={hook.seconds}s"


def _reason(error: BaseException) -> str:
    """What went wrong, without numbers and names of classes."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return getattr(error, "strerror", None) or str(error)

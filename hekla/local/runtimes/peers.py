"""The names by which pods find each other: a hosts file for each namespace.

On a cluster a name server answers. Here every pod has an address of its own on this machine,
so a file does, which every container of the namespace sees as ``/etc/hosts``.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hekla.local.kinds.registry import NAMESPACES, PODS, SERVICES, Object
from hekla.local.runtimes import environment
from hekla.local.runtimes.sandbox import PEERS
from hekla.local.storage.memory import DELETED, Change, Storage

_DOMAIN: Final = "svc.cluster.local"
_HEAD: Final = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
_HOSTS: Final = "hosts"
_SHARE: Final = 10
"""A file is written for at most one part in so many of the time."""


class Peer(NamedTuple):
    """A pod that others may look for."""

    address: str
    namespace: str
    name: str
    hostname: str
    """What its spec says, which may be nothing."""
    own: str
    """What it calls its machine."""
    subdomain: str


class Service(NamedTuple):
    """A name for some of a namespace's pods."""

    name: str
    headless: bool
    wants: Mapping[str, str]

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels is one of them."""
        return bool(self.wants) and all(
            labels.get(key) == value for key, value in self.wants.items()
        )


def peer(pod: Object, address: str) -> Peer:
    """How others see a pod."""
    spec, metadata = pod["spec"], pod["metadata"]
    return Peer(
        address,
        metadata["namespace"],
        metadata["name"],
        spec.get("hostname") or "",
        environment.hostname(pod),
        spec.get("subdomain") or "",
    )


def lines(
    namespace: str, peers: Sequence[tuple[Peer, Mapping[str, str]]], services: Iterable[Service]
) -> Iterator[str]:
    """The lines of a hosts file. A name that two pods claim is the older pod's.

    Only a service's name means several pods.
    """
    services = sorted(services)
    headless = {service.name: service for service in services if service.headless}
    taken = {"localhost"} | {service.name for service in services}
    owned: dict[str, list[str]] = {}
    # What a cluster would resolve comes before what only we do.
    for rank in range(3):
        for one, labels in peers:
            for name in _names(one, labels, headless, rank):
                if name not in taken:
                    taken.add(name)
                    owned.setdefault(one.address, []).append(name)
    for address, names in owned.items():
        yield f"{address} {' '.join(names)}"
    for service in services:
        full = f"{service.name}.{namespace}"
        for one, labels in peers:
            if service.selects(labels):
                yield f"{one.address} {service.name} {full} {full}.svc {full}.{_DOMAIN}"


def _names(
    one: Peer, labels: Mapping[str, str], headless: Mapping[str, Service], rank: int
) -> Iterator[str]:
    service = headless.get(one.subdomain)
    if rank == 0 and one.hostname and service is not None and service.selects(labels):
        name = f"{one.hostname}.{one.subdomain}"
        full = f"{name}.{one.namespace}"
        yield from (name, full, f"{full}.svc", f"{full}.{_DOMAIN}")
    elif rank == 1:
        yield one.own
    elif rank == 2:
        yield one.name


class Peers:
    """Keeps the hosts files."""

    def __init__(self, storage: Storage, folder: Path) -> None:
        self._storage = storage
        self._folder = folder
        self._peers: dict[str, dict[str, Peer]] = {}
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._free_at: dict[str, float] = {}
        storage.listen(self._hear)

    def layer(self, namespace: str) -> Path:
        """A folder to lay over ``/etc``: its ``hosts`` leads to the file."""
        folder = self._folder / namespace / "etc"
        if not folder.is_dir():
            draft = folder.with_name("etc.new")
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            (draft / "hosts").symlink_to(f"{PEERS}/{_HOSTS}")
            draft.replace(folder)
        if not self.hosts(namespace).exists():
            self._write(namespace)
        return folder

    def hosts(self, namespace: str) -> Path:
        """The hosts file of a namespace, in the folder that its containers see as ``PEERS``."""
        return self._folder / namespace / _HOSTS

    def join(self, uid: str, one: Peer) -> None:
        """Let others find a pod."""
        self._peers.setdefault(one.namespace, {})[uid] = one
        self._touch(one.namespace)

    def leave(self, namespace: str, uid: str) -> None:
        """Let nobody find it any more."""
        if self._peers.get(namespace, {}).pop(uid, None) is not None:
            self._touch(namespace)

    def _hear(self, changes: Sequence[Change]) -> None:
        for change in changes:
            entry = change.entry
            if entry.kind is NAMESPACES and change.type == DELETED:
                shutil.rmtree(self._folder / entry.name, ignore_errors=True)
            elif self._matters(change):
                self._touch(entry.namespace)

    def _matters(self, change: Change) -> bool:
        entry, previous = change.entry, change.previous
        peers = self._peers.get(entry.namespace, {})
        if entry.kind is SERVICES:
            return bool(peers)
        relabelled = previous is not None and previous.labels != entry.labels
        return entry.kind is PODS and entry.uid in peers and relabelled

    def _touch(self, namespace: str) -> None:
        """Write the file soon: what changes in one turn, or while it may not, is one write."""
        if namespace not in self._due:
            loop = asyncio.get_running_loop()
            wait = self._free_at.get(namespace, 0.0) - loop.time()
            self._due[namespace] = loop.call_later(max(wait, 0.0), self._write, namespace)

    def _write(self, namespace: str) -> None:
        due = self._due.pop(namespace, None)
        if due is not None:
            due.cancel()
        begun = time.monotonic()
        found = list(
            lines(namespace, list(self._members(namespace)), self._services(namespace))
        )
        file = self.hosts(namespace)
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name("hosts.new")
        draft.write_text(_HEAD + "".join(f"{line}\n" for line in found))
        draft.replace(file)
        took = time.monotonic() - begun
        self._free_at[namespace] = asyncio.get_running_loop().time() + _SHARE * took

    def _members(self, namespace: str) -> Iterator[tuple[Peer, Mapping[str, str]]]:
        for one in self._peers.get(namespace, {}).values():
            entry = self._storage.latest(PODS, namespace, one.name)
            if entry is not None:
                yield one, entry.labels

    def _services(self, namespace: str) -> Iterator[Service]:
        for entry in self._storage.select(SERVICES, namespace):
            spec = entry.object()["spec"]
            wants = spec.get("selector") or {}
            yield Service(entry.name, spec.get("clusterIP") == "None", wants)

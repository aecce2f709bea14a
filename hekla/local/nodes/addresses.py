"""Addresses for pods: each its own in 127/8, where every address is this machine's."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Final

_FIRST: Final = int(IPv4Address("127.1.0.1"))
_LAST: Final = int(IPv4Address("127.254.255.254"))


class Addresses:
    """Which addresses are taken."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next = _FIRST

    def reserve(self, address: str) -> None:
        """Mark an address that a pod has had from before."""
        self._taken.add(address)

    def take(self) -> str:
        """A free address; one that was given back is used again as late as possible."""
        while True:
            address = str(IPv4Address(self._next))
            self._next = _FIRST if self._next == _LAST else self._next + 1
            if address not in self._taken:
                self._taken.add(address)
                return address

    def give_back(self, address: str) -> None:
        """Free an address."""
        self._taken.discard(address)

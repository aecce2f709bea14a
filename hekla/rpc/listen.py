"""Addresses that a service listens on: ``host:port``, ``[::1]:port`` or ``unix:/path``."""

from __future__ import annotations

import ipaddress
import socket

UNIX = "unix:"


class ListenError(Exception):
    """An address that cannot be listened on. Ends the program at start."""


def split(address: str) -> tuple[str, int]:
    """Host and port of a TCP address.

    Raises:
        ListenError: it is not ``host:port``.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ListenError(f"{address!r} is not host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_local(address: str) -> bool:
    """Whether only processes of this machine can reach it."""
    if address.startswith(UNIX):
        return True
    host, _ = split(address)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_local(*addresses: str, insecure: bool) -> None:
    """Refuse what others could reach: there is no TLS and nobody is asked who they are.

    Raises:
        ListenError: an address is not this machine's own, and ``insecure`` does not allow it.
    """
    for address in addresses:
        if not insecure and not is_local(address):
            raise ListenError(
                f"listening on {address} would let anyone in, for there is no TLS yet:"
                " use a loopback address, or set HEKLA_INSECURE_LISTEN=true"
            )


def require_free(address: str) -> None:
    """Try whether a TCP address can be listened on; gRPC itself would not say why not.

    Raises:
        ListenError: it cannot, with the system's reason.
    """
    host, port = split(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen()
    except OSError as error:
        raise cannot_listen(address, error) from error


def cannot_listen(address: str, error: OSError) -> ListenError:
    """One line that says where and why."""
    return ListenError(f"cannot listen on {address}: {(error.strerror or str(error)).lower()}")

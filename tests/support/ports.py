"""Ports that nobody gets by chance between the moment they are chosen and that of their use."""

from __future__ import annotations

import errno
import random
import socket
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_FIRST, _LAST = 15_000, 32_767
"""Below what the kernel hands out to whoever asks for any port, or connects to somewhere."""


def free_port() -> int:
    """A port on which nobody listens.

    Any port that the kernel gives may be given to somebody else once it is let go.
    """
    dice = random.SystemRandom()
    while True:
        port = dice.randint(_FIRST, _LAST)
        if is_free(port):
            return port


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether one could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
        return True

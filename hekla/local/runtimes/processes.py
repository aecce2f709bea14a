"""Processes of the machine, told apart from later ones that got the same number."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """One process."""

    pid: int
    boot: str
    start: str
    """In clock ticks since that boot."""

    @classmethod
    def read(cls, record: str) -> Process | None:
        """From a boot id and a line of ``/proc/PID/stat``."""
        boot, _, stat = record.partition(" ")
        head, _, tail = stat.rpartition(")")
        fields = tail.split()
        if not head or len(fields) < 20:
            return None
        return cls(int(head.partition(" ")[0]), boot, fields[19])

    def alive(self) -> bool:
        """Whether it still runs."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        state = stat.rpartition(")")[2].split()[0]
        return state not in "ZX" and Process.read(f"{_boot_id()} {stat}") == self

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it still runs."""
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return
        try:
            if self.alive():  # what the handle means cannot change any more
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)

    async def gone(self) -> None:
        """Return once it is dead."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if self.alive():
                await _readable(handle)
        finally:
            os.close(handle)


async def reaped(pid: int) -> int | None:
    """Wait until our child is dead, and let its number go; its exit code, if it had one."""
    handle = os.pidfd_open(pid)  # cannot be another's: the number is ours until we reap it
    try:
        await _readable(handle)
    finally:
        os.close(handle)
    try:
        _, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


async def _readable(handle: int) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(handle, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(handle)


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()

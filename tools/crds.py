"""Writes deploy/crds from ``hekla.api``, or with ``--check`` says where they differ."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import yaml

from hekla.api.crd import DEFINITIONS

FOLDER: Final = Path("deploy/crds")
_HEAD: Final = "# Drawn from hekla.api by `make crds`.\n"


class _Plain(yaml.SafeDumper):
    """Writes every part out where it stands, without anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def drawn() -> dict[Path, str]:
    """The text of each file."""
    return {
        FOLDER / f"{one.group}_{one.plural}.yaml": _HEAD
        + yaml.dump(one.manifest(), Dumper=_Plain, sort_keys=False, width=100)
        for one in DEFINITIONS
    }


def main(arguments: list[str]) -> int:
    """Write or check; return the exit code."""
    wanted = drawn()
    found = {path: path.read_text() for path in FOLDER.glob("*.yaml")}
    if "--check" not in arguments:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for path in found.keys() - wanted.keys():
            path.unlink()
        for path, text in wanted.items():
            path.write_text(text)
        return 0
    wrong = sorted(
        path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path)
    )
    for path in wrong:
        sys.stderr.write(f"{path} is not what hekla.api says: run `make crds`\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

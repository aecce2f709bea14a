"""The Dockerfile, read; and what its images hold, made without Docker."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path
from typing import Final, NamedTuple

from tools import lock_part

ROOT: Final = Path(__file__).parents[2]
DOCKERFILE: Final = ROOT / "deploy" / "Dockerfile"
SITE: Final = "/opt/hekla"
"""Where the images have everything."""


class Instruction(NamedTuple):
    """One line of a Dockerfile, with what continues it."""

    word: str
    text: str


@dataclass(frozen=True)
class Stage:
    """What stands between two FROMs."""

    name: str
    base: str
    instructions: list[Instruction] = field(default_factory=list)

    def all(self, word: str) -> Sequence[str]:
        """The texts of one kind of instruction."""
        return [text for kind, text in self.instructions if kind == word]


def stages(dockerfile: str) -> Mapping[str, Stage]:
    """The stages of a Dockerfile, by name."""
    found: dict[str, Stage] = {}
    current: Stage | None = None
    text = re.sub(r"^\s*#.*\n", "", dockerfile, flags=re.MULTILINE)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            current = found[name] = Stage(name, base.strip())
        elif word and current is not None:
            current.instructions.append(Instruction(word, " ".join(rest.split())))
    return found


def entrypoint(stage: Stage) -> Sequence[str]:
    """The command of an image; it must be in the form that needs no shell."""
    [text] = stage.all("ENTRYPOINT")
    found: list[str] = json.loads(text)
    return found


def environment(stage: Stage) -> Mapping[str, str]:
    """What ENV sets."""
    pairs = [pair for text in stage.all("ENV") for pair in text.split()]
    return dict(pair.split("=", 1) for pair in pairs)


@dataclass(frozen=True)
class Image:
    """What an image holds, in a folder: the packages, and a Python that has no others."""

    folder: Path

    @property
    def site(self) -> Path:
        """What is at ``SITE`` in the image."""
        return self.folder / "site"

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of every container of it."""
        stage = stages(DOCKERFILE.read_text())["runtime"]
        found = {name: self._here(value) for name, value in environment(stage).items()}
        return {"PATH": f"{self.folder / 'python' / 'bin'}:/usr/bin:/bin", **found}

    def _here(self, value: str) -> str:
        return value.replace(SITE, str(self.site))


def build(folder: Path) -> Image:
    """Do what the stage ``build`` does: the packages of the lock, and the wheel of ours.

    Packages are not fetched: those of this environment are the same, by the same lock.
    """
    image = Image(folder)
    image.site.mkdir(parents=True)
    venv.create(folder / "python", symlinks=True)
    lock = (ROOT / "requirements.lock").read_text()
    run_time = lock_part.part(lock, {lock_part.PROJECT}, without=lock_part.LOCAL_ONLY)
    for name in sorted({name for name, _, _ in lock_part.entries(run_time)}):
        _link(name, image.site)
    python = (sys.executable, "-m")
    wheels = folder / "wheels"
    subprocess.run(
        [*python, "hatchling", "build", "-t", "wheel", "-d", str(wheels)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [wheel] = wheels.iterdir()
    options = ("--quiet", "--disable-pip-version-check", "--no-compile", "--no-index")
    subprocess.run(
        [*python, "pip", "install", *options, "--no-deps", f"--target={image.site}", wheel],
        check=True,
    )
    return image


def _link(name: str, site: Path) -> None:
    files = distribution(name).files or ()
    tops = {file.parts[0] for file in files if file.parts[0] not in {"..", "__pycache__"}}
    for top in tops:
        target = Path(str(distribution(name).locate_file(top)))
        if not (site / top).exists():
            (site / top).symlink_to(target)

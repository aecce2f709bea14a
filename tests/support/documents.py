"""The examples of a page: blocks of commands with what they print, and blocks of Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
ANYTHING: Final = "…"
"""Stands for anything within a line; as a line of its own for any lines."""


class Block(NamedTuple):
    """A fenced block."""

    page: str
    line: int
    language: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


class Command(NamedTuple):
    """A command, and the lines that it prints as the page has it."""

    where: str
    text: str
    printed: Sequence[str]


def blocks(page: str, language: str) -> Iterator[Block]:
    """The blocks of a language, in order."""
    fence: tuple[int, str] | None = None
    lines: list[str] = []
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        if fence is None:
            if line.startswith("```"):
                fence, lines = (number, line[3:].strip()), []
        elif line.startswith("```"):
            if fence[1] == language:
                yield Block(page, fence[0], language, "\n".join(lines))
            fence = None
        else:
            lines.append(line)
    assert fence is None, f"{page}:{fence} is never closed"


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block: each line that begins with ``$``."""
    text, at = "", block.line
    printed: list[str] = []
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith("$ "):
            if text:
                yield Command(f"{block.page}:{at}", text, printed)
            text, printed, at = line[2:], [], number
        else:
            printed.append(line)
    if text:
        yield Command(f"{block.page}:{at}", text, printed)


def pattern(printed: Sequence[str]) -> re.Pattern[str]:
    """What output must look like, spaces at the ends of lines aside."""
    lines = ["(?:.*\n)*" if line == ANYTHING else _line(line) for line in printed]
    return re.compile("".join(lines))


def _line(line: str) -> str:
    # Columns are as wide as what stands in them, which differs from run to run.
    words = [
        ".*".join(re.escape(part) for part in word.split(ANYTHING)) for word in line.split()
    ]
    return r"\s*" + r"\s+".join(words) + r"[^\S\n]*\n"

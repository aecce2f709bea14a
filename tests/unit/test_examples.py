"""The manifests of examples/ are admitted, and the pages name them and every command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hekla.api.queue import Queue
from hekla.cli import manifest
from hekla.cli.main import main
from services.webhook.rules.admission import Operation, admit
from tests.support.documents import ROOT, blocks, commands, pattern
from tests.support.worlds import FixedWorld

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
PAGES = "".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_admitted_and_asks_for_nothing_that_is_not_built(path: Path) -> None:
    queues: list[Queue] = []
    for item in manifest.read([str(path)], None):
        world = FixedWorld(*queues)
        found = admit(Operation.CREATE, item.object, None, world)  # type: ignore[type-var]

        assert found.violations == ()
        assert found.warnings == ()
        if isinstance(found.object, Queue):
            queues.append(found.object)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_named_on_a_page(path: Path) -> None:
    assert f"`{path.name}`" in PAGES


def leaves(group: click.Group, path: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, f"{path}{name} ")
        elif command is not None and not command.hidden:
            yield f"{path}{name}"


def test_output_on_a_page_matches_what_it_stands_for_and_nothing_else() -> None:
    printed = ["NAME   AGE", "a-…    …s", "…", "end"]

    assert pattern(printed).search("NAME      AGE\na-x   3s\nmore\nmore\nend\n")
    assert pattern(printed).search("NAME AGE\na-x   3s\nend\n")
    assert not pattern(printed).search("NAME AGE\nb-x   3s\nend\n")
    assert not pattern(printed).search("NAME AGE\na-x   3s\nmore\n")


def test_the_pages_have_examples_to_run() -> None:
    assert len([one for it in blocks("docs/cli.md", "console") for one in commands(it)]) > 30
    assert len(list(blocks("docs/python.md", "python"))) > 4


def test_every_command_is_known_to_a_page_or_says_it_all_in_its_help() -> None:
    known = {"up", "down", "status", "stop", "start", "migrate", "version"}
    missing = [
        command
        for command in leaves(main, "")
        if command not in known
        and f"hekla {command}" not in PAGES
        and f"`{command}`" not in PAGES
    ]

    assert missing == []

"""How objects are printed: as a table, as YAML or JSON in Kubernetes' shape, or by name."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, BinaryIO, Final, Generic, TypeVar

import click
import yaml

from hekla.api import scalars
from hekla.cli.table import plain, show

T = TypeVar("T")

_LIKE_A_NUMBER: Final = re.compile(r"[-+.]?[0-9]")
"""Texts that some reader of YAML might take for a number or a date."""
_STR: Final = "tag:yaml.org,2002:str"


class Format(StrEnum):
    """What ``-o`` takes."""

    TABLE = "table"
    WIDE = "wide"
    YAML = "yaml"
    JSON = "json"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """How the objects of a kind are printed."""

    plural: str
    """For people: ``jobs``."""
    resource: str
    """As ``kubectl -o name`` has it: ``job.batch.volcano.sh``."""
    header: Sequence[str]
    wide: Sequence[str] = ()
    """What ``-o wide`` shows besides."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One object, ready to be printed in any way."""

    name: str
    namespace: str
    row: Sequence[str]
    content: Mapping[str, Any]
    more: Sequence[str] = ()
    """What ``-o wide`` shows besides."""


def listing(
    kind: Kind[Any], shown: Sequence[Shown], form: Format, *, namespace: str, everywhere: bool
) -> None:
    """Print what a list found."""
    match form:
        case Format.JSON | Format.YAML:
            items = [one.content for one in shown]
            _dump({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}, form)
        case Format.NAME:
            for one in shown:
                click.echo(f"{kind.resource}/{one.name}")
        case Format.TABLE | Format.WIDE if not shown:
            where = f" in namespace {namespace}" if namespace else ""
            click.echo(f"No {kind.plural} found{where}.", err=True)
        case Format.TABLE | Format.WIDE:
            show(*columns(kind, shown, wide=form is Format.WIDE, everywhere=everywhere))


def single(kind: Kind[Any], shown: Shown, form: Format) -> None:
    """Print one object."""
    match form:
        case Format.JSON | Format.YAML:
            _dump(shown.content, form)
        case Format.NAME:
            click.echo(f"{kind.resource}/{shown.name}")
        case Format.TABLE | Format.WIDE:
            show(*columns(kind, [shown], wide=form is Format.WIDE, everywhere=False))


def created(kind: Kind[Any], shown: Shown, form: Format) -> None:
    """Print an object that was just made: in a table's stead, that it was."""
    if form in (Format.TABLE, Format.WIDE):
        click.echo(f"{kind.resource}/{shown.name} created")
    else:
        single(kind, shown, form)


def columns(
    kind: Kind[Any], shown: Sequence[Shown], *, wide: bool, everywhere: bool
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """A table's header and rows."""
    header = [*kind.header, *kind.wide] if wide else list(kind.header)
    rows = [[*one.row, *one.more] if wide else list(one.row) for one in shown]
    if everywhere:
        header = ["NAMESPACE", *header]
        rows = [[one.namespace, *row] for one, row in zip(shown, rows, strict=True)]
    return header, rows


def warnings(texts: Sequence[str], of: str = "") -> None:
    """Tell what the author of an object should know."""
    for text in texts:
        click.echo(f"warning: {of}{plain(text)}", err=True)


def _dump(content: Mapping[str, Any], form: Format) -> None:
    if form is Format.JSON:
        click.echo(json.dumps(content, indent=4, ensure_ascii=False))
    else:
        click.echo(to_yaml(content), nl=False)


def raw() -> BinaryIO:
    """Where bytes go that pods printed; nowhere if there is no standard output."""
    return sys.stdout.buffer if sys.stdout is not None else io.BytesIO()


class _Dumper(yaml.SafeDumper):
    """Writes texts so that every reader of YAML takes them for texts, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write what occurs twice twice."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    odd = not text.replace("\n", "").isprintable() or _LIKE_A_NUMBER.match(text)
    if odd or not isinstance(scalars.resolve(text), str):
        return dumper.represent_scalar(_STR, text, style='"')
    return dumper.represent_scalar(_STR, text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def to_yaml(content: Mapping[str, Any]) -> str:
    """``content`` as YAML, its fields in their order."""
    return yaml.dump(
        content,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=1000,
    )

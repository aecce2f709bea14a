"""How objects are printed: as a table, as YAML or JSON in Kubernetes' shape, or by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

import click
import yaml

from hekla.api import scalars
from hekla.cli.table import table

T = TypeVar("T")

_LIKE_A_NUMBER: Final = re.compile(r"[-+.]?[0-9]")
"""Texts that some reader of YAML might take for a number or a date."""
_STR: Final = "tag:yaml.org,2002:str"


class Format(StrEnum):
    """What ``-o`` takes."""

    TABLE = "table"
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


@dataclass(frozen=True, slots=True)
class Shown:
    """One object, ready to be printed in any way."""

    name: str
    namespace: str
    row: Sequence[str]
    content: Mapping[str, Any]


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
        case Format.TABLE if not shown:
            where = f" in namespace {namespace}" if namespace else ""
            click.echo(f"No {kind.plural} found{where}.", err=True)
        case Format.TABLE:
            click.echo(_table(kind, shown, everywhere=everywhere))


def single(kind: Kind[Any], shown: Shown, form: Format) -> None:
    """Print one object."""
    match form:
        case Format.JSON | Format.YAML:
            _dump(shown.content, form)
        case Format.NAME:
            click.echo(f"{kind.resource}/{shown.name}")
        case Format.TABLE:
            click.echo(_table(kind, [shown], everywhere=False))


def _table(kind: Kind[Any], shown: Sequence[Shown], *, everywhere: bool) -> str:
    if not everywhere:
        return table(kind.header, [one.row for one in shown])
    rows = [[one.namespace, *one.row] for one in shown]
    return table(["NAMESPACE", *kind.header], rows)


def _dump(content: Mapping[str, Any], form: Format) -> None:
    if form is Format.JSON:
        click.echo(json.dumps(content, indent=4, ensure_ascii=False))
    else:
        click.echo(to_yaml(content), nl=False)


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

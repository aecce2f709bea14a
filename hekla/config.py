"""Settings: one frozen dataclass a program, read from the environment and from flags.

A field's name is the variable's and the flag's: ``pool_size`` of a class whose prefix is
``HEKLA_CONTROLLER`` is ``HEKLA_CONTROLLER_POOL_SIZE`` and ``--pool-size``. A flag wins over
the environment, ``--no-register`` is ``--register=false``, and an empty variable counts as
not set. Only a ``__main__`` calls ``load``; settings are passed on as values.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
import sys
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeVar, Union, get_args, get_origin

from hekla.domain import duration
from hekla.domain.errors import InvalidError

Config = TypeVar("Config")

_UNITS: Final = re.compile(r"\d+(\.\d+)?")
_URL_PASSWORD: Final = re.compile(r"(?<=://)([^/?#@:]*):[^/?#]*(?=@)")
_QUERY_PASSWORD: Final = re.compile(r"(?i)([?&\s](?:ssl)?password=)[^&\s]*")
_MASK: Final = "***"


class ConfigError(Exception):
    """Settings are missing or cannot be read; the text lists every one. Ends the program."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def setting(
    default: Any = dataclasses.MISSING,
    *,
    env: str | None = None,
    secret: bool = False,
    minimum: float | None = None,
    help: str | None = None,  # noqa: A002 - reads as what it is
) -> Any:
    """A field that says more than its type: another variable, a secret, a lower bound."""
    metadata = {"env": env, "secret": secret, "minimum": minimum, "help": help}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """One setting of a program, as its help and its documentation show it."""

    name: str
    flag: str
    variable: str
    kind: Any
    default: Any
    help: str
    secret: bool
    minimum: float | None

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is dataclasses.MISSING

    @property
    def kind_name(self) -> str:
        """What it takes, in words."""
        return _kind_name(self.kind)


def options(cls: type[Any], prefix: str) -> list[Option]:
    """Every setting of ``cls``, in the order of its fields."""
    hints = typing.get_type_hints(cls)
    docs = _field_docs(cls)
    return [
        Option(
            name=field.name,
            flag="--" + field.name.replace("_", "-"),
            variable=field.metadata.get("env") or f"{prefix}_{field.name.upper()}",
            kind=hints[field.name],
            default=_default(field),
            help=field.metadata.get("help") or docs.get(field.name, ""),
            secret=bool(field.metadata.get("secret")),
            minimum=field.metadata.get("minimum"),
        )
        for field in dataclasses.fields(cls)
        if field.init
    ]


def load(
    cls: type[Config], prefix: str, environ: Mapping[str, str], argv: Sequence[str] = ()
) -> Config:
    """Read ``cls`` from flags and environment. ``--help`` prints the settings and exits.

    Raises:
        ConfigError: with every problem there is, not only the first.
    """
    known = options(cls, prefix)
    if "--help" in argv or "-h" in argv:
        _print_help(cls, prefix)
    flags, problems = _flags(known, argv)
    values: dict[str, Any] = {}
    for option in known:
        source, text = option.flag, flags.get(option.name)
        if text is None:
            source, text = option.variable, environ.get(option.variable) or None
        if text is None:
            if option.required:
                problems.append(f"{option.variable} (or {option.flag}) is not set")
            continue
        try:
            values[option.name] = _bounded(option, _parse(option.kind, text))
        except ValueError as error:
            shown = _MASK if option.secret else repr(masked(text))
            problems.append(f"{source}={shown} {error}")
    if problems:
        raise ConfigError(problems)
    return cls(**values)


def describe(settings: Any) -> dict[str, Any]:
    """The settings as plain values, without secrets: fit for a log line."""
    return {
        option.name: _shown(option, getattr(settings, option.name))
        for option in options(type(settings), "")
    }


def masked(text: str) -> str:
    """``text`` without the passwords of the URLs in it."""
    return _QUERY_PASSWORD.sub(rf"\1{_MASK}", _URL_PASSWORD.sub(rf"\1:{_MASK}", text))


def help_text(cls: type[Any], prefix: str) -> str:
    """Every setting with its flag, variable, kind, default and meaning."""
    lines = [inspect.cleandoc(cls.__doc__ or ""), ""]
    for option in options(cls, prefix):
        default = "required" if option.required else f"default {_shown(option, option.default)}"
        lines.append(f"  {option.flag} <{option.kind_name}>  ({option.variable}; {default})")
        lines += textwrap.wrap(
            option.help, 84, initial_indent="      ", subsequent_indent="      "
        )
    return "\n".join(lines)


def _print_help(cls: type[Any], prefix: str) -> NoReturn:
    sys.stdout.write(help_text(cls, prefix) + "\n")
    raise SystemExit(0)


def _flags(known: Sequence[Option], argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    by_flag = {option.flag: option for option in known}
    found: dict[str, str] = {}
    problems: list[str] = []
    words: Iterator[str] = iter(argv)
    for word in words:
        flag, equals, text = word.partition("=")
        option = by_flag.get(flag)
        denied = by_flag.get(f"--{word.removeprefix('--no-')}")
        if word.startswith("--no-") and denied is not None and denied.kind is bool:
            found[denied.name] = "false"
        elif option is None:
            problems.append(f"{flag} is no setting")
        elif equals:
            found[option.name] = text
        elif option.kind is bool:
            found[option.name] = "true"
        else:
            value = next(words, None)
            if value is None:
                problems.append(f"{flag} needs a value")
            else:
                found[option.name] = value
    return found, problems


def _parse(kind: Any, text: str) -> Any:
    """``text`` as a ``kind``; a ValueError says what it is not."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        inner = [part for part in get_args(kind) if part is not type(None)]
        return None if text == "" else _parse(inner[0], text)
    if origin is tuple:
        parts = (part.strip() for part in text.split(","))
        return tuple(_parse(get_args(kind)[0], part) for part in parts if part)
    if origin is Literal:
        if text not in get_args(kind):
            raise ValueError(f"is none of {', '.join(get_args(kind))}")
        return text
    return _scalar(kind, text)


def _scalar(kind: Any, text: str) -> Any:
    if kind is bool:
        return _boolean(text)
    if kind is timedelta:
        return _span(text)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _member(kind, text)
    try:
        return {str: str, int: int, float: float, Path: Path}[kind](text)
    except ValueError:
        raise ValueError(f"is not {_article(_kind_name(kind))}") from None


def _boolean(text: str) -> bool:
    known = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
    if text.lower() not in known:
        raise ValueError("is not true or false")
    return known[text.lower()]


def _span(text: str) -> timedelta:
    try:
        if _UNITS.fullmatch(text):
            return timedelta(seconds=float(text))
        return duration.parse(text)
    except (InvalidError, OverflowError):
        raise ValueError("is not a duration such as 3s, 500ms or 1h2m") from None


def _member(kind: type[StrEnum], text: str) -> StrEnum:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"is none of {', '.join(kind)}") from None


def _bounded(option: Option, value: Any) -> Any:
    number = value.total_seconds() if isinstance(value, timedelta) else value
    minimum = option.minimum
    if minimum is None and isinstance(value, timedelta):
        minimum = 0
    if minimum is not None and number is not None and not number >= minimum:
        raise ValueError(f"must be at least {minimum:g}")
    return value


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _shown(option: Option, value: Any) -> Any:
    if option.secret and value not in (None, ""):
        return masked(value) if "://" in str(value) else _MASK
    if isinstance(value, timedelta):
        return duration.format(value)
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, tuple):
        return [masked(str(part)) for part in value]
    return str(value) if isinstance(value, Path) else value


def _kind_name(kind: Any) -> str:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _kind_name(next(part for part in get_args(kind) if part is not type(None)))
    if origin is tuple:
        return f"{_kind_name(get_args(kind)[0])},…"
    if origin is Literal:
        return "|".join(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "|".join(kind)
    names = {str: "text", int: "integer", float: "number", bool: "true|false"}
    return names.get(kind) or {timedelta: "duration", Path: "path"}[kind]


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _field_docs(cls: type[Any]) -> dict[str, str]:
    """The text that follows each field in the source of ``cls`` and of what it extends."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, TypeError, SyntaxError):  # no source at hand: help is shorter
            continue
        body = typing.cast("ast.ClassDef", tree.body[0]).body
        for node, following in itertools.pairwise(body):
            if (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and isinstance(following, ast.Expr)
                and isinstance(following.value, ast.Constant)
            ):
                docs[node.target.id] = " ".join(str(following.value.value).split())
    return docs

"""Draws ``docs/configuration.md`` from the settings classes of the services."""

from __future__ import annotations

import importlib
from datetime import timedelta
from typing import Any, Final

from hekla import config
from hekla.domain import duration

SERVICES: Final = ("webhook", "controller", "scheduler", "flow")

_HEAD: Final = """# Settings

Drawn from the code by `make docs`; do not edit.

Every setting is an environment variable and a flag of `python -m services.<name>`; a flag
wins. An empty variable counts as not set. A duration is `3s`, `500ms`, `1h2m` or a plain
number of seconds. All mistakes are reported at once, and the settings in force are the first
line of the log, without secrets.
"""


def draw() -> str:
    """The page."""
    return "\n".join([_HEAD, *(_section(service) for service in SERVICES)])


def _section(service: str) -> str:
    module = importlib.import_module(f"services.{service}.config")
    cls = getattr(module, f"{service.title()}Config")
    rows = [
        f"| `{option.variable}` | `{option.flag}` | {_cell(option.kind_name)} |"
        f" {_default(option)} | {_cell(option.help)} |"
        for option in config.options(cls, f"HEKLA_{service.upper()}")
    ]
    head = "| variable | flag | kind | default | meaning |\n| --- | --- | --- | --- | --- |"
    return "\n".join([f"## {service}\n", head, *rows, ""])


def _default(option: config.Option) -> str:
    value: Any = option.default
    if option.required:
        return "required"
    if value in (None, "", ()):
        return "none"
    if isinstance(value, timedelta):
        return f"`{duration.format(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

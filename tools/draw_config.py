"""Draws ``docs/configuration.md`` from the settings classes."""

from __future__ import annotations

import importlib
from datetime import timedelta
from typing import Any, Final

from hekla import config
from hekla.domain import duration
from hekla.local import settings as local

SERVICES: Final = ("webhook", "controller", "scheduler", "flow")

_LOCAL: Final = "local cluster"
_HEAD: Final = """# Settings

Drawn from the code by `make docs`; do not edit.

Every setting is an environment variable and a flag of `python -m services.<name>`, or of
`python -m hekla.local`, which `hekla up` starts; a flag wins. An empty variable counts as not
set. A duration is `3s`, `500ms`, `1h2m` or a plain number of seconds. All mistakes are reported
at once, and the settings in force are the first line of the log, without secrets.
"""


def draw() -> str:
    """The page."""
    of_services = [_of_service(service) for service in SERVICES]
    return "\n".join([_HEAD, *of_services, _section(_LOCAL, local.Settings, local.PREFIX)])


def _of_service(service: str) -> str:
    module = importlib.import_module(f"services.{service}.config")
    cls = getattr(module, f"{service.title()}Config")
    return _section(service, cls, f"HEKLA_{service.upper()}")


def _section(title: str, cls: type, prefix: str) -> str:
    rows = [
        f"| `{option.variable}` | `{option.flag}` | {_cell(option.kind_name)} |"
        f" {_default(option)} | {_cell(option.help)} |"
        for option in config.options(cls, prefix)
    ]
    head = "| variable | flag | kind | default | meaning |\n| --- | --- | --- | --- | --- |"
    return "\n".join([f"## {title}\n", head, *rows, ""])


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

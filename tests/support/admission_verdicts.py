"""Compares a verdict with its row."""

from __future__ import annotations

import re
from typing import Any

from tests.support.admission_doors import Verdict
from tests.support.admission_rows import ANY, Row


def check(row: Row, verdict: Verdict | None) -> str:
    """What is not as the row says; empty if all is."""
    if verdict is None:
        return ""
    expected = row.refuse or {}
    found = dict(verdict.violations)
    if verdict.allowed is not (row.refuse is None) or set(found) != set(expected):
        return f"{row.source}: {'admitted' if verdict.allowed else f'refused for {found}'}"
    odd = [path for path, value in expected.items() if value not in (ANY, found[path])]
    if odd:
        return f"{row.source}: {odd[0]} is {found[odd[0]]}"
    for path, value in row.stored.items() if verdict.stored is not None else ():
        if _at(verdict.stored, path) != value:
            return f"{row.source}: {path} is stored as {_at(verdict.stored, path)}"
    return ""


def _at(value: Any, path: str) -> Any:
    for key in re.findall(r"[^.\[\]]+", path):
        value = value[int(key)] if key.isdigit() else value.get(key)
    return value

"""JSON as clients send it: what cannot be read, or is nested too deeply, is refused."""

from __future__ import annotations

from typing import Final

import orjson

from hekla.local.kinds import errors

DEEPEST: Final = 128
"""Levels of objects and lists in each other; nothing real comes near."""


def parse(body: bytes) -> object:
    """What ``body`` says.

    Raises:
        ApiError: it is not JSON, or is nested too deeply.
    """
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise errors.bad_request(f"the body is not valid JSON: {error}") from error
    if body.count(b"{") + body.count(b"[") > DEEPEST:
        check_depth(value)
    return value


def check_depth(value: object) -> None:
    """Refuse what is nested too deeply.

    Raises:
        ApiError: it is.
    """
    level: list[object] = [value]
    for _ in range(DEEPEST):
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                below += [item for item in each.values() if isinstance(item, dict | list)]
            elif isinstance(each, list):
                below += [item for item in each if isinstance(item, dict | list)]
        if not below:
            return
        level = below
    raise errors.bad_request(f"the object is nested more than {DEEPEST} levels deep")

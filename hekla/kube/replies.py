"""Outcomes as callers see them."""

from __future__ import annotations

from typing import Any

import orjson

from hekla.kube.requests import Reply
from hekla.kube.wire import Outcome


def read_outcome(outcome: Outcome) -> Reply:
    """The reply, its object decoded."""
    status, body, reason, message = outcome
    try:
        decoded: dict[str, Any] | None = orjson.loads(body) if body else None
    except orjson.JSONDecodeError:
        text = body[:500].decode(errors="replace")
        return Reply(status, None, reason or "UnreadableAnswer", message or text)
    if reason or 200 <= status < 300:
        return Reply(status, decoded, reason, message)
    said = decoded or {}
    return Reply(status, None, str(said.get("reason") or ""), str(said.get("message") or ""))

"""Outcomes as callers see them."""

from __future__ import annotations

from typing import Any

import orjson

from hekla.kube.requests import Reply
from hekla.kube.wire import Outcome


def read_outcome(outcome: Outcome) -> Reply:
    """The reply, its object decoded."""
    status, body, reason, message = outcome
    if not body:
        return Reply(status, None, reason, message)
    try:
        decoded: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        decoded = None
    if not isinstance(decoded, dict):
        text = body[:500].decode(errors="replace")
        return Reply(status, None, reason or "UnreadableAnswer", message or text)
    if reason or 200 <= status < 300:
        return Reply(status, decoded, reason, message)
    said = decoded.get("reason"), decoded.get("message")
    return Reply(status, None, str(said[0] or ""), str(said[1] or ""))

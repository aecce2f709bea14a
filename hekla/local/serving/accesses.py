"""Who asked for what: each client's requests, in the terms in which RBAC grants them.

The local cluster asks nobody who they are; clients tell it in their user agent. What a
service needs to be allowed on a real cluster can so be read at ``/hekla/accesses`` after it
has done its work here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from hekla.local.serving.routing import Request, Target

MOST: Final = 2_000
"""Kinds of access that are told apart; user agents are the clients' to choose."""
_LONGEST_AGENT: Final = 60
_VERBS: Final[Mapping[str, str]] = {
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


class Access(NamedTuple):
    """One kind of request that a client made."""

    agent: str
    """The first word of its user agent."""
    verb: str
    group: str
    resource: str
    """As a rule of a role names it: ``pods``, ``pods/log``."""


def read(target: Target, request: Request) -> Access:
    """What a request counts as."""
    if request.method in {"GET", "HEAD"}:
        verb = "get" if target.name else "watch" if request.flag("watch") else "list"
    elif request.method == "DELETE" and not target.name:
        verb = "deletecollection"
    else:
        verb = _VERBS.get(request.method, request.method.lower())
    plural = target.kind.plural
    return Access(
        (request.agent.split() or ["unknown"])[0][:_LONGEST_AGENT],
        verb,
        target.kind.group,
        f"{plural}/{target.subresource}" if target.subresource else plural,
    )


class Accesses:
    """How often each was made since the start."""

    def __init__(self) -> None:
        self._counts: Counter[Access] = Counter()

    def note(self, target: Target, request: Request) -> None:
        """Count a request."""
        access = read(target, request)
        if access in self._counts or len(self._counts) < MOST:
            self._counts[access] += 1

    def describe(self) -> dict[str, Any]:
        """All of them, as they are answered."""
        listed = [{**access._asdict(), "count": n} for access, n in self._counts.items()]
        return {"accesses": listed}

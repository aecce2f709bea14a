"""Full lists, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import orjson

from hekla.kube.session import Answer, Session

PAGE: Final = 500

Query = Sequence[tuple[str, str]]


class ListPage(NamedTuple):
    """One page."""

    body: bytes
    items: list[dict[str, Any]]
    resource_version: str
    """Where to watch from, once all pages are read."""


class RefusedError(Exception):
    """The server answered that it will not do it."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(
            f"answered {answer.status}: {answer.body[:500].decode(errors='replace')}"
        )
        self.answer = answer


class RestartedError(Exception):
    """The server forgot the list half way: drop the pages so far and begin again."""


async def pages(
    session: Session, path: str, query: Query, *, deadline: float, size: int = PAGE
) -> AsyncIterator[ListPage]:
    """Read a full list as of one moment. A ``size`` of 0 asks for all of it at once.

    Raises:
        RequestError: a page was not answered.
        RefusedError: a page was refused.
        RestartedError: the pages so far are of no use.
    """
    token = ""
    while True:
        asked = [*query]
        if size:
            asked.append(("limit", str(size)))
        if token:
            asked.append(("continue", token))
        answer = await session.send("GET", path_with(path, asked), deadline=deadline)
        if answer.status == 410 and token:
            raise RestartedError
        if answer.status != 200:
            raise RefusedError(answer)
        page = orjson.loads(answer.body)
        metadata = page["metadata"]
        yield ListPage(answer.body, page.get("items") or [], metadata["resourceVersion"])
        token = metadata.get("continue") or ""
        if not token:
            return


def path_with(path: str, query: Query) -> str:
    """A path and its query."""
    return f"{path}?{urlencode(query)}" if query else path

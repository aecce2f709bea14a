"""Every change of some kinds, told to somebody of this process until they stop listening."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from hekla.domain.errors import DomainError
from hekla.store.hub import Hub, Item, Subscription

log = logging.getLogger(__name__)

PATIENCE: Final = 0.5
"""Seconds after which it is looked whether to go on."""


@contextmanager
def following(
    hub: Hub,
    kinds: Collection[str],
    *,
    take: Callable[[Sequence[Item]], None],
    lost: Callable[[], None],
) -> Iterator[None]:
    """Have ``take`` called with what changes, from now on, until the block ends.

    ``lost`` is called first of all, and whenever changes may have been missed: what there is
    has to be looked at then. Both are called by a thread of their own, and must not block.
    """
    ended = threading.Event()

    def follow() -> None:
        while not ended.is_set():
            with hub.subscribed(kinds) as subscription:
                lost()
                _hear(subscription, ended, take)

    thread = threading.Thread(target=follow, name="following", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=10)


def _hear(
    subscription: Subscription,
    ended: threading.Event,
    take: Callable[[Sequence[Item]], None],
) -> None:
    while not ended.is_set():
        try:
            news = subscription.get(PATIENCE)
        except DomainError as error:
            log.info("changes missed; looking at everything", extra={"error": str(error)})
            ended.wait(PATIENCE)
            return
        if news is not None and news.items:
            take(news.items)

"""A stream that says nothing is given up, so that it can be opened anew."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from hekla.rpc.attended import attended
from services.scheduler.clients import BOOKMARK, News
from services.scheduler.events import Change


class Call:
    """A call that ends when it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()


def test_a_stream_that_falls_silent_is_cancelled() -> None:
    call = Call()

    def news() -> Iterator[News]:
        yield News("1", [Change(BOOKMARK, None)])
        assert call.cancelled.wait(10), "nobody gave it up"

    with attended(call, news(), silence=0.2) as stream:
        assert [one.cursor for one in stream] == ["1"]
        assert call.cancelled.is_set()


def test_a_stream_that_speaks_is_left_alone_until_its_reader_is_done() -> None:
    call = Call()
    with attended(call, iter([News("1", [Change(BOOKMARK, None)])]), silence=10) as stream:
        assert len(list(stream)) == 1
        assert not call.cancelled.is_set()

    assert call.cancelled.is_set()

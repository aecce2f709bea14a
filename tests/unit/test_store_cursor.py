"""Cursors compared as sets of transactions, and read from any words."""

from __future__ import annotations

import contextlib
from uuid import UUID, uuid4

import pytest
from hypothesis import assume, example, given, strategies as st

from hekla.domain.errors import CursorExpiredError
from hekla.store.feed import BEGINNING, Cursor

STORE = uuid4()
LAST = 12
XIDS = range(1, LAST + 3)


@st.composite
def cursors(draw: st.DrawFn) -> Cursor:
    """Every snapshot of a few transactions; the last before ``high`` is always over."""
    high = draw(st.integers(1, LAST))
    running = sorted(draw(st.sets(st.sampled_from(range(1, high - 1))))) if high > 2 else []
    low = running[0] if running else high
    return Cursor(STORE, f"{low}:{high}:{','.join(map(str, running))}")


def seen(cursor: Cursor) -> set[int]:
    return {xid for xid in XIDS if cursor.sees(xid)}


@given(cursor=cursors())
def test_a_cursor_reads_back_as_it_was_written(cursor: Cursor) -> None:
    assert Cursor.parse(str(cursor)) == cursor


def test_no_words_are_the_beginning() -> None:
    assert Cursor.parse("") == BEGINNING
    assert str(BEGINNING) == ""


@given(one=cursors(), other=cursors())
def test_a_cursor_covers_another_if_it_sees_all_that_the_other_sees(
    one: Cursor, other: Cursor
) -> None:
    assert one.covers(other) == (seen(one) >= seen(other))


@given(cursor=cursors(), here=cursors(), data=st.data())
def test_a_cursor_missed_what_ended_since_and_may_have_been_dropped(
    cursor: Cursor, here: Cursor, data: st.DataObject
) -> None:
    assume(here.covers(cursor))
    horizon = data.draw(st.sampled_from([0, *seen(here)]), "newest that was dropped")

    since = seen(here) - seen(cursor)
    assert cursor.missed(here, horizon) == any(xid <= horizon for xid in since)


@given(words=st.text() | st.from_regex(r"[0-9a-f]{32}:[0-9]*:[0-9]*:[0-9,]*", fullmatch=True))
@example(words=f"{STORE.hex}:5:3:")
@example(words=f"{STORE.hex}:0:3:")
@example(words=f"{STORE.hex}:-1:3:")
@example(words=f"{STORE.hex}:3:5:5")
@example(words=f"{STORE.hex}:3:5:2")
@example(words=f"{STORE.hex}:3:9:5,4")
@example(words=f"{STORE.hex}:3:9:4,4")
@example(words=f"{STORE.hex}:3:{2**64}:")
@example(words=f"{STORE.hex}:{'9' * 5000}:{'9' * 5000}:")
@example(words=f"{STORE.hex}:\u0663:\u0665:")
def test_any_words_are_a_cursor_or_an_expired_one(words: str) -> None:
    with contextlib.suppress(CursorExpiredError):
        cursor = Cursor.parse(words)
        assert cursor == BEGINNING or Cursor.parse(str(cursor)) == cursor


@pytest.mark.parametrize(
    "snapshot", ["5:3:", "0:3:", "3:5:5", "3:5:2", "3:9:5,4", f"3:{2**63}:", "3:9", "a:b:c"]
)
def test_what_postgres_would_not_read_is_refused_before(snapshot: str) -> None:
    with pytest.raises(CursorExpiredError, match="list again"):
        Cursor.parse(f"{UUID(int=1).hex}:{snapshot}")

"""When objects have their turn: marks, and the pace of statuses."""

from __future__ import annotations

from hypothesis import given, strategies as st

from hekla.domain.names import Key
from hekla.kube.events import WatchEvent
from hekla.kube.mirror.board import Board
from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.known import Known
from hekla.kube.mirror.marks import FIRST_BACKOFF, Marks
from hekla.kube.mirror.showing import BORROWED, SPACING, Showing

KEYS = [Key("default", name) for name in "abc"]
A, B, C = KEYS


def test_marking_twice_makes_one_look_at_the_earlier_time() -> None:
    marks = Marks()
    marks.mark([A], 5)
    marks.mark([A, B], 2)
    marks.mark([A], 9)

    assert marks.next_at() == 2
    assert marks.take(1, 10) == []
    assert list(marks.take(9, 10)) == [A, B]
    assert marks.next_at() is None


def test_what_fails_waits_longer_each_time_until_it_is_settled() -> None:
    marks = Marks()
    waits = []
    for _ in range(3):
        marks.put_off(A, 0)
        waits.append(marks.next_at())
        marks.take(100, 1)
    marks.settled([A])
    marks.put_off(A, 0)

    assert waits == [FIRST_BACKOFF, 2 * FIRST_BACKOFF, 4 * FIRST_BACKOFF]
    assert marks.next_at() == FIRST_BACKOFF


def test_news_end_a_wait() -> None:
    marks = Marks()
    marks.put_off(A, 0)
    marks.mark([A], 0.01)

    assert marks.next_at() == 0.01


def test_new_phases_come_first_and_then_who_waited_longest() -> None:
    showing = Showing(rate=2)
    showing.want(A, "a", {}, 1, urgent=False)
    showing.want(B, "b", {}, 2, urgent=False)
    showing.want(C, "c", {}, 3, urgent=True)

    assert [one.key for one in showing.take(3, 10)] == [C, A]
    assert showing.take(3, 10) == []
    assert showing.next_at(3) == 3.5
    assert [one.key for one in showing.take(3.5, 10)] == [B]


def test_an_object_is_shown_once_a_second_but_a_new_phase_borrows() -> None:
    showing = Showing(rate=100)
    showing.want(A, "a", {"n": 1}, 0, urgent=False)
    assert len(showing.take(0, 10)) == 1
    showing.want(A, "a", {"n": 2}, 0.1, urgent=False)
    showing.want(A, "a", {"n": 3}, 0.2, urgent=False)

    assert showing.take(0.5, 10) == []
    [one] = showing.take(SPACING, 10)
    assert (one.status, one.since) == ({"n": 3}, 0.1)
    showing.want(A, "a", {"n": 4}, 1.1, urgent=True)
    assert len(showing.take(1.1, 10)) == 1


@given(
    st.lists(
        st.tuples(st.sampled_from(KEYS), st.floats(0, 0.4), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_over_time_no_object_is_shown_more_than_once_a_second(
    wishes: list[tuple[Key, float, bool]],
) -> None:
    showing = Showing(rate=5)
    now, shown, total = 0.0, dict.fromkeys(KEYS, 0), 0
    for key, pause, urgent in wishes:
        now += pause
        showing.want(key, key.name, {}, now, urgent=urgent)
        for one in showing.take(now, 10):
            shown[one.key] += 1
            total += 1
        assert total <= 5 + now * 5 + 1
    for count in shown.values():
        assert count <= now / SPACING + 1 + BORROWED / SPACING
    later = now
    while (due := showing.next_at(later)) is not None:
        later = max(due, later + 0.001)
        showing.take(later, 10)
        assert later < now + 60


def custom(version: int, uid: str = "u", key: Key = A) -> Custom:
    return Custom(key, uid, version, 1)


def test_only_newer_versions_are_taken_and_answers_never_bring_back_what_ended() -> None:
    known = Known()

    assert known.put(custom(5))
    assert not known.put(custom(4))
    assert known.remove(custom(6))
    assert not known.hear(custom(5))
    assert known.get(A) is None
    assert known.put(custom(7, "v"))
    assert known.seen_to_go(A, "u")


def test_a_list_tells_what_changed() -> None:
    known = Known()
    for key in (A, B):
        known.put(custom(1, key.name, key))

    changed = set(known.replace([custom(1, "a", A), custom(2, "c", C)]))

    assert changed == {B, C}
    assert not known.seen_to_go(B, "b"), "a list may be older than what we know"


def test_what_an_answer_tells_first_is_told_on() -> None:
    told: list[Custom] = []
    board = Board(200.0, lambda: 0.0, told.append)

    board.hear(custom(1))
    board.hear(custom(2))
    news = board.take([(WatchEvent("ADDED", {}), custom(1))])

    assert [one.version for one in told] == [1], "the watch would bring nothing new of it"
    assert not news
    assert board.due(10).keys == [A]

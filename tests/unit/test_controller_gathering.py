"""What is asked for at the same time is done together, and each is told of its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from hekla.domain.errors import AlreadyExistsError, UnavailableError
from services.controller.gathering import HEAVIEST, MOST, Gathering, together
from tests.support.waiting import wait_until

SOON = 20.0


class Acts:
    """Doubles numbers, as soon as it may, and knows what it was asked together."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may = threading.Event()
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()

    def act(self, numbers: Sequence[int]) -> Sequence[int | Exception]:
        with self._lock:
            self.batches.append(list(numbers))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        assert self.may.wait(SOON)
        with self._lock:
            self.at_once -= 1
        if any(number < 0 for number in numbers):
            raise AlreadyExistsError(f"one of {numbers} is there")
        return [ValueError(number) if number == 13 else 2 * number for number in numbers]


def given(
    many: ThreadPoolExecutor, gathering: Gathering[int, int], *numbers: int, weight: int = 0
) -> list[Future[int]]:
    """Give numbers one after the other, so that they stand in line in this order."""
    futures = []
    for number in numbers:
        before = gathering.waiting
        futures.append(many.submit(gathering.do, number, weight=weight))
        wait_until(lambda: gathering.waiting > before, timeout=SOON)  # noqa: B023 - at once
    return futures


def test_who_comes_alone_acts_at_once_and_who_comes_meanwhile_together() -> None:
    acts = Acts()
    gathering = Gathering[int, int](acts.act, at_once=1)

    with ThreadPoolExecutor(8) as many:
        first = many.submit(gathering.do, 1)
        wait_until(lambda: acts.batches == [[1]], timeout=SOON)
        others = given(many, gathering, 2, 3, 4)
        acts.may.set()

        assert [one.result(SOON) for one in (first, *others)] == [2, 4, 6, 8]

    assert acts.batches == [[1], [2, 3, 4]]


def test_each_is_told_what_became_of_it_alone() -> None:
    acts = Acts()
    gathering = Gathering[int, int](acts.act, at_once=1)

    with ThreadPoolExecutor(8) as many:
        many.submit(gathering.do, 1)
        wait_until(lambda: bool(acts.batches), timeout=SOON)
        bad, good, taken = given(many, gathering, 13, 3, -1)
        acts.may.set()

        assert good.result(SOON) == 6
        with pytest.raises(ValueError, match="13"):
            bad.result(SOON)
        with pytest.raises(AlreadyExistsError, match=r"\[-1\]"):
            taken.result(SOON)


def test_what_is_done_together_has_bounds() -> None:
    acts = Acts()
    gathering = Gathering[int, int](acts.act, at_once=1)

    with ThreadPoolExecutor(MOST + 8) as many:
        many.submit(gathering.do, 1)
        wait_until(lambda: bool(acts.batches), timeout=SOON)
        given(many, gathering, 2, 3, 4, weight=HEAVIEST // 2)
        given(many, gathering, 5, weight=3 * HEAVIEST)
        rest = [many.submit(gathering.do, number) for number in range(100, 101 + MOST)]
        wait_until(lambda: gathering.waiting == 4 + len(rest), timeout=SOON)
        acts.may.set()

    assert acts.batches[:4] == [[1], [2, 3], [4], [5]]
    assert [len(batch) for batch in acts.batches[4:]] == [MOST, 1]


def test_of_many_threads_each_gets_its_own_and_no_more_act_than_may() -> None:
    acts = Acts()
    acts.may.set()
    gathering = Gathering[int, int](acts.act, at_once=2)

    with ThreadPoolExecutor(16) as many:
        found = list(many.map(gathering.do, range(100, 600)))

    assert found == [2 * number for number in range(100, 600)]
    assert sorted(number for batch in acts.batches for number in batch) == list(range(100, 600))
    assert acts.most_at_once <= 2


def test_what_cannot_be_reached_is_not_asked_for_each() -> None:
    calls = []

    def act(numbers: Sequence[int]) -> Sequence[int | Exception]:
        calls.append(numbers)
        raise UnavailableError("away")

    outcomes = together(act, [1, 2, 3])

    assert [type(one) for one in outcomes] == [UnavailableError] * 3
    assert calls == [[1, 2, 3]]

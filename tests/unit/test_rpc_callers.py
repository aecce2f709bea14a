"""What one caller may ask for: calls by a clock that the test moves, streams by counting."""

from __future__ import annotations

from typing import cast

import grpc
import pytest

from hekla.domain.errors import ExhaustedError
from hekla.rpc.callers import CallerLimits, Callers, caller_of


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Context:
    """What a call is known by."""

    def __init__(self, peer: str, *metadata: tuple[str, str]) -> None:
        self._peer, self._metadata = peer, metadata

    def peer(self) -> str:
        return self._peer

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._metadata


def refusals(callers: Callers, caller: str, times: int) -> int:
    refused = 0
    for _ in range(times):
        try:
            callers.take(caller)
        except ExhaustedError:
            refused += 1
    return refused


def test_a_caller_may_call_twice_as_often_for_a_moment_and_then_so_often() -> None:
    clock = Clock()
    callers = Callers(CallerLimits(calls_per_second=10), clock=clock)

    assert refusals(callers, "a", 25) == 5
    clock.now += 1
    assert refusals(callers, "a", 25) == 15
    assert refusals(callers, "b", 20) == 0, "others are not told to wait"


def test_who_is_refused_is_told_when_to_come_again() -> None:
    clock = Clock()
    callers = Callers(CallerLimits(calls_per_second=0.5), clock=clock)
    callers.take("a")

    with pytest.raises(ExhaustedError, match=r"a calls more often than 0\.5") as refused:
        callers.take("a")

    assert refused.value.retry_after is not None
    clock.now += refused.value.retry_after.total_seconds()
    callers.take("a")


def test_a_clock_that_is_set_back_gives_and_takes_nothing() -> None:
    clock = Clock()
    callers = Callers(CallerLimits(calls_per_second=1), clock=clock)
    assert refusals(callers, "a", 3) == 1
    clock.now -= 1000
    assert refusals(callers, "a", 1) == 1
    clock.now += 1
    assert refusals(callers, "a", 1) == 0


def test_streams_are_counted_until_they_end() -> None:
    callers = Callers(CallerLimits(streams=1))

    with (
        callers.streaming("a"),
        callers.streaming("b"),
        pytest.raises(ExhaustedError, match="a has 1 streams open"),
    ):
        callers.streaming("a").__enter__()
    with callers.streaming("a"):
        pass


def test_nothing_is_limited_unless_it_is_asked_for() -> None:
    callers = Callers(CallerLimits())

    assert refusals(callers, "a", 1000) == 0
    with callers.streaming("a"), callers.streaming("a"):
        pass


@pytest.mark.parametrize(
    ("context", "caller"),
    [
        (Context("ipv4:10.0.0.1:5123"), "ipv4:10.0.0.1"),
        (Context("ipv6:[::1]:5123"), "ipv6:[::1]"),
        (Context("unix:/run/hekla.sock"), "unix"),
        (Context("ipv4:10.0.0.1:5123", ("x-hekla-caller", "team-a")), "team-a"),
        (Context("ipv4:10.0.0.1:5123", ("x-hekla-caller", "")), "ipv4:10.0.0.1"),
        (Context("ipv4:10.0.0.1:5123", ("x-hekla-caller", "a" * 500)), "a" * 128),
        (
            Context("ipv4:10.0.0.1:5123", ("x-hekla-caller", "hekla-flow")),
            "hekla-flow at ipv4:10.0.0.1",
        ),
    ],
)
def test_a_caller_is_who_it_says_or_its_machine(context: Context, caller: str) -> None:
    assert caller_of(cast("grpc.ServicerContext", context)) == caller

"""What several threads ask for at the same time, done together by one of them.

Who comes while nothing is under way acts at once, and alone. Who comes meanwhile waits in line,
and the first of the line acts for all who wait with it. So nobody waits for company, and the
more come, the fewer acts there are for each.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, Generic, TypeVar, cast

from hekla.domain.errors import UnavailableError

Given = TypeVar("Given")
Made = TypeVar("Made")

MOST: Final = 50
"""What is done together at most."""
HEAVIEST: Final = 1 << 20
"""Bytes that are done together, unless one alone has more."""


class _Place(Generic[Given]):
    """Somebody's place in the line."""

    def __init__(self, given: Given, weight: int) -> None:
        self.given = given
        self.weight = weight
        self.turn = threading.Event()
        """Set when it is done, or this one is to act."""
        self.outcome: object = None


class Gathering(Generic[Given, Made]):
    """Gathers what is given to :meth:`do`."""

    def __init__(
        self, act: Callable[[Sequence[Given]], Sequence[Made | Exception]], *, at_once: int = 2
    ) -> None:
        """``act`` gives what became of each, or why nothing did; up to ``at_once`` run."""
        self._act = act
        self._free = at_once
        self._line: deque[_Place[Given]] = deque()
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many wait for others to be done with."""
        return len(self._line)

    def do(self, given: Given, *, weight: int = 0) -> Made:
        """What became of ``given``, which has so many bytes.

        Raises:
            Exception: what ``act`` says of it.
        """
        mine = _Place(given, weight)
        with self._lock:
            acting = self._free > 0
            if acting:
                self._free -= 1
            else:
                self._line.append(mine)
        if acting:
            self._lead([mine])
        else:
            mine.turn.wait()
            if mine.outcome is None:
                self._lead(self._first_of_line())
        if isinstance(mine.outcome, Exception):
            raise mine.outcome
        return cast("Made", mine.outcome)

    def _first_of_line(self) -> Sequence[_Place[Given]]:
        """Take those who are done together next; the first of them is the caller."""
        with self._lock:
            count, weight = 0, 0
            for place in islice(self._line, MOST):
                weight += place.weight
                if count and weight > HEAVIEST:
                    break
                count += 1
            return [self._line.popleft() for _ in range(count)]

    def _lead(self, places: Sequence[_Place[Given]]) -> None:
        outcomes: Sequence[Made | Exception] = ()
        try:
            outcomes = together(self._act, [place.given for place in places])
        finally:
            # Also when this thread is being ended: the others are not to wait for it.
            ended = [UnavailableError("it broke off; try again")] * (
                len(places) - len(outcomes)
            )
            for place, outcome in zip(places, [*outcomes, *ended], strict=False):
                place.outcome = outcome
            self._hand_over()
            for place in places:
                place.turn.set()

    def _hand_over(self) -> None:
        with self._lock:
            if self._line:
                self._line[0].turn.set()
            else:
                self._free += 1


def together(
    act: Callable[[Sequence[Given]], Sequence[Made | Exception]], given: Sequence[Given]
) -> Sequence[Made | Exception]:
    """What became of each of ``given``: if ``act`` fails with all, by acting on each alone.

    But for a failure that has nothing to do with what was given: then it is that of all.
    """
    if not given:
        return ()
    try:
        return act(given)
    except UnavailableError as error:
        return [error] * len(given)
    except Exception as error:
        if len(given) == 1:
            return [error]
    return [outcome for one in given for outcome in together(act, [one])]

"""Reports to the controller, and words to pods, before they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hekla.domain.errors import DomainError, InvalidError, PreconditionError, UnavailableError
from hekla.domain.phases import PodGroupPhase
from services.scheduler.core.objects import GroupReport
from services.scheduler.events import Deposed, Event
from services.scheduler.telling import CHUNK, PACE, Reports


def report(uid: str, running: int = 0, *, may_rest: bool = False) -> GroupReport:
    return GroupReport(uid, PodGroupPhase.RUNNING, (), running, 0, 0, "", may_rest=may_rest)


def resting(uid: str, running: int = 0) -> GroupReport:
    return report(uid, running, may_rest=True)


@dataclass
class Controller:
    """Acknowledges reports, or answers with the error that is next."""

    errors: list[DomainError] = field(default_factory=list)
    heard: list[tuple[int, list[tuple[str, int]]]] = field(default_factory=list)
    bad: str = ""

    def take(self, epoch: int, reports: Sequence[GroupReport]) -> Sequence[str]:
        if self.errors:
            raise self.errors.pop(0)
        if any(it.uid == self.bad for it in reports):
            raise InvalidError("makes no sense")
        self.heard.append((epoch, [(it.uid, it.running) for it in reports]))
        return [it.uid for it in reports if it.uid == "gone"]


def reporting(controller: Controller) -> tuple[Reports, list[Event]]:
    told: list[Event] = []
    reports = Reports(controller.take, told.append)
    reports.begin(7)
    return reports, told


def test_the_latest_report_of_a_group_is_sent_until_it_is_acknowledged() -> None:
    controller = Controller(errors=[UnavailableError("away")])
    reports, told = reporting(controller)
    reports.add([report("a", 1), report("b", 1)])
    assert not reports.look(), "the controller is away"
    reports.add([report("a", 2)])

    assert reports.look()

    assert controller.heard == [(7, [("a", 2), ("b", 1)])]
    assert reports.done()
    assert not reports.look()
    assert told == []


def test_a_group_that_is_gone_is_not_reported_again() -> None:
    controller = Controller()
    reports, _ = reporting(controller)
    reports.add([report("gone")])

    reports.look()

    assert reports.done()


def test_a_report_that_is_refused_does_not_hold_up_the_others() -> None:
    controller = Controller(bad="b")
    reports, _ = reporting(controller)
    reports.add([report("a"), report("b"), report("c")])

    reports.look()

    assert controller.heard == [(7, [("a", 0)]), (7, [("c", 0)])]
    assert reports.done()


def test_who_reports_for_an_epoch_that_is_over_is_deposed() -> None:
    reports, told = reporting(Controller(errors=[PreconditionError("another leads")]))
    reports.add([report("a")])

    reports.look()

    assert told == [Deposed(7, "another leads")]


def test_nothing_is_reported_after_a_term_has_ended() -> None:
    controller = Controller()
    reports, _ = reporting(controller)
    reports.add([report("a")])

    reports.end()
    reports.add([report("b")])

    assert not reports.look()
    assert reports.done()
    assert controller.heard == []


def much(reports: Reports, controller: Controller) -> None:
    """Report so much that nobody acts on that what follows rests."""
    reports.add([resting(f"g{number:04}") for number in range(PACE * 60)])
    assert reports.wake.is_set()
    assert reports.look()
    assert len(controller.heard.pop()[1]) == CHUNK
    reports.wake.clear()


def test_what_nobody_acts_on_goes_at_once_while_there_is_little_of_it() -> None:
    controller = Controller()
    reports, _ = reporting(controller)

    reports.add([resting("a"), report("b")])
    reports.look()

    assert controller.heard == [(7, [("b", 0), ("a", 0)])]
    assert reports.done()


def test_what_nobody_acts_on_rests_while_there_is_much_of_it_and_is_overtaken() -> None:
    controller = Controller()
    reports, _ = reporting(controller)
    much(reports, controller)

    reports.add([resting("a", 1), resting("b", 1), resting("a", 2)])
    assert not reports.wake.is_set()
    assert not reports.look()
    reports.add([report("b", 2), report("c", 1), resting("c", 2)])
    assert reports.wake.is_set()
    reports.look()
    assert controller.heard == [(7, [("b", 2), ("c", 2)])]

    reports.hurry()
    reports.look()
    told = [it for _, reports in controller.heard for it in reports]
    assert [it for it in told if it[0] == "a"] == [("a", 2)]
    assert reports.done()


def test_nothing_is_told_of_a_group_that_is_gone() -> None:
    controller = Controller()
    reports, _ = reporting(controller)
    reports.add([resting("a"), report("b"), resting("c")])

    reports.withdraw(["a", "b", "unknown"])
    reports.look()

    assert controller.heard == [(7, [("c", 0)])]

"""Reports to the controller, and words to pods, before they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hekla.domain.errors import DomainError, InvalidError, PreconditionError, UnavailableError
from hekla.domain.phases import PodGroupPhase
from services.scheduler.core.objects import GroupReport
from services.scheduler.events import Deposed, Event
from services.scheduler.telling import Reports


def report(uid: str, running: int = 0) -> GroupReport:
    return GroupReport(uid, PodGroupPhase.RUNNING, (), running, 0, 0, "")


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

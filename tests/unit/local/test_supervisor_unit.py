from __future__ import annotations

import json

from hypothesis import given, strategies as st

from hekla.local.supervisor import unit
from hekla.local.supervisor.unit import State, Step, Unit, UnitSpec

SPEC = UnitSpec(name="controller", argv=("true",))
ONCE = UnitSpec(name="migrate", argv=("true",), once=True)


def died(times: int, *, lived: float = 1.0) -> tuple[Unit, float]:
    """A unit that died so many times in a row, and the present time."""
    found, now = Unit(), 100.0
    for _ in range(times):
        now = max(now, found.not_before)
        found = unit.started(found, 7, now)
        now += lived
        found = unit.exited(SPEC, found, "exit code 1", well=False, now=now)
    return found, now


def test_the_time_to_the_next_start_doubles_from_one_second_to_ten() -> None:
    waits = [found.not_before - now for found, now in map(died, range(1, 7))]

    assert waits == [1, 2, 4, 8, 10, 10]


def test_a_stable_minute_makes_it_start_at_one_second_again() -> None:
    found, _ = died(5)
    found = unit.started(found, 7, 200.0)

    found = unit.exited(SPEC, found, "exit code 1", well=False, now=260.0)

    assert (found.failures, found.not_before, found.restarts) == (1, 261.0, 6)


def test_it_is_not_started_before_its_time() -> None:
    found, now = died(1)

    assert unit.step(SPEC, found, ready=True, now=now + 0.9) is Step.NOTHING
    assert unit.state(found, now + 0.9) is State.BACKOFF
    assert unit.step(SPEC, found, ready=True, now=now + 1.0) is Step.START


def test_it_waits_for_what_it_comes_after() -> None:
    assert unit.step(SPEC, Unit(), ready=False, now=1.0) is Step.NOTHING
    assert unit.state(Unit(), 1.0) is State.WAITING


def test_what_comes_after_something_that_ends_waits_for_its_good_end() -> None:
    specs = {"migrate": ONCE, "flow": UnitSpec(name="flow", argv=("true",), after=("migrate",))}
    running = unit.started(Unit(), 7, 0.0)
    failed = unit.exited(ONCE, running, "exit code 1", well=False, now=1.0)
    done = unit.exited(ONCE, running, "exit code 0", well=True, now=1.0)

    ready = [
        unit.ready(specs["flow"], specs, {"migrate": state, "flow": Unit()})
        for state in (Unit(), running, failed, done)
    ]

    assert ready == [False, False, False, True]
    assert unit.state(done, 2.0) is State.DONE
    assert unit.step(ONCE, done, ready=True, now=99.0) is Step.NOTHING


def test_a_service_that_ends_well_is_started_again_too() -> None:
    running = unit.started(Unit(), 7, 0.0)

    ended = unit.exited(SPEC, running, "exit code 0", well=True, now=1.0)

    assert unit.step(SPEC, ended, ready=True, now=2.0) is Step.START


def test_stopping_signals_once_and_kills_after_the_grace() -> None:
    found = unit.unwant(unit.started(Unit(), 7, 0.0))
    assert unit.step(SPEC, found, ready=True, now=1.0) is Step.SIGNAL

    found = unit.signalled(found, 1.0)
    assert unit.step(SPEC, found, ready=True, now=10.9) is Step.NOTHING
    assert unit.wake_at(SPEC, found) == 11.0
    assert unit.step(SPEC, found, ready=True, now=11.0) is Step.KILL
    assert unit.step(SPEC, unit.killed(found), ready=True, now=99.0) is Step.NOTHING


def test_what_was_stopped_stays_stopped_and_counts_no_failure() -> None:
    found = unit.signalled(unit.unwant(unit.started(Unit(), 7, 0.0)), 1.0)

    found = unit.exited(SPEC, found, "killed by SIGTERM", well=False, now=2.0)

    assert unit.state(found, 3.0) is State.STOPPED
    assert (found.failures, found.restarts) == (0, 0)
    assert unit.step(SPEC, found, ready=True, now=1000.0) is Step.NOTHING


def test_what_is_wanted_again_while_it_stops_starts_at_once_when_it_has() -> None:
    stopping = unit.signalled(unit.unwant(unit.started(Unit(), 7, 0.0)), 1.0)

    found = unit.exited(SPEC, unit.want(stopping), "killed by SIGTERM", well=False, now=2.0)

    assert unit.step(SPEC, found, ready=True, now=2.0) is Step.START
    assert found.failures == 0


def test_wanting_it_forgives_what_failed_before() -> None:
    found, now = died(6)

    found = unit.want(found)

    assert unit.step(SPEC, found, ready=True, now=now) is Step.START
    assert found.failures == 0


def test_a_name_means_its_replicas_too_and_a_replicas_name_only_itself() -> None:
    names = ["controller", "controller-2", "controller-3", "controller-http", "flow"]

    assert unit.named("controller", names) == ["controller", "controller-2", "controller-3"]
    assert unit.named("controller-2", names) == ["controller-2"]
    assert unit.named("nothing", names) == []


texts = st.text(max_size=8)


@given(
    st.builds(
        UnitSpec,
        name=texts,
        argv=st.lists(texts, max_size=3).map(tuple),
        env=st.dictionaries(texts, texts, max_size=2),
        after=st.lists(texts, max_size=2).map(tuple),
        once=st.booleans(),
        stop_timeout=st.floats(0, 100),
        rank=st.integers(0, 3),
    )
)
def test_a_spec_comes_back_from_json_as_it_went(spec: UnitSpec) -> None:
    assert UnitSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


@given(st.lists(st.sampled_from(["tick", "die", "stop", "want"]), max_size=30))
def test_whatever_happens_a_unit_that_is_wanted_runs_within_ten_seconds(
    what: list[str],
) -> None:
    found, now = Unit(), 0.0
    for event in what:
        now += 0.5
        if event == "stop":
            found = unit.unwant(found)
        elif event == "want":
            found = unit.want(found)
        elif event == "die" and found.pid is not None:
            found = unit.exited(SPEC, found, "exit code 1", well=False, now=now)
        found = taken(found, now)
    found = taken(unit.want(found) if not found.wanted else found, now)
    if found.pid is not None and found.signalled is not None:
        found = unit.exited(SPEC, found, "killed by SIGTERM", well=False, now=now)

    found = taken(found, now + unit.LONGEST_BACKOFF)

    assert found.pid is not None


def taken(found: Unit, now: float) -> Unit:
    """The unit after its next step was taken."""
    match unit.step(SPEC, found, ready=True, now=now):
        case Step.START:
            return unit.started(found, 7, now)
        case Step.SIGNAL:
            return unit.signalled(found, now)
        case Step.KILL:
            return unit.killed(found)
        case Step.NOTHING:
            return found

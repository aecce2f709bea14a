"""What the doctor makes of what it measured."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hekla.config import ConfigError
from hekla.store.health import Health, Holder
from services.controller.doctor import judging, report
from services.controller.doctor.judging import Bounds, Finding, State

WELL = Health(
    version="18.1",
    version_number=180001,
    settings={"fsync": "on", "autovacuum": "on"},
    replica=False,
    now=datetime(2026, 1, 2, tzinfo=UTC),
    database="hekla",
    database_bytes=3 * 2**20,
    connections=10,
    most_connections=100,
    ours=4,
    oldest=None,
)


def of(health: Health, check: str) -> Finding:
    return next(one for one in judging.postgres(health) if one.check == check)


def test_where_all_is_well_nothing_is_to_be_done() -> None:
    findings = list(judging.postgres(WELL))

    assert {one.state for one in findings} == {State.OK}
    assert not any(one.todo for one in findings)


@pytest.mark.parametrize(
    ("health", "check", "state", "todo"),
    [
        pytest.param(
            replace(WELL, version="9.6", version_number=90600), "postgres", State.FAIL,
            "upgrade to 14", id="too old",
        ),
        pytest.param(
            replace(WELL, replica=True), "postgres", State.FAIL, "primary", id="takes no writes"
        ),
        pytest.param(
            replace(WELL, settings={"fsync": "off"}), "postgres settings", State.WARN,
            "turn on fsync", id="may lose what it answered",
        ),
        pytest.param(
            replace(WELL, connections=80), "connections", State.WARN, "raise max_connections",
            id="soon out of connections",
        ),
        pytest.param(
            replace(WELL, connections=99), "connections", State.FAIL, "raise max_connections",
            id="out of connections",
        ),
        pytest.param(
            replace(WELL, oldest=Holder("pid 7 (psql, idle in transaction)", 700, 7)),
            "oldest transaction", State.FAIL, "pg_terminate_backend(7)", id="forgotten",
        ),
        pytest.param(
            replace(WELL, oldest=Holder("prepared transaction 'x'", 70, None)),
            "oldest transaction", State.WARN, "commit or roll it back", id="prepared",
        ),
    ],
)  # fmt: skip
def test_a_database_that_is_not_well_is_told_what_to_do(
    health: Health, check: str, state: State, todo: str
) -> None:
    found = of(health, check)

    assert found.state is state
    assert todo in found.todo


@pytest.mark.parametrize(
    ("finding", "state"),
    [
        (judging.skew(0.5, 0.1), State.OK),
        (judging.skew(-5, 4.5), State.OK),
        (judging.skew(-5, 0.1), State.WARN),
        (judging.skew(3600, 0.1), State.FAIL),
        (judging.schema("0001", "0001", None), State.OK),
        (judging.schema(None, "0001", "empty"), State.FAIL),
        (judging.work(5, 1), State.OK),
        (judging.work(5, 400), State.FAIL),
        (judging.leader("vm:1", 2.0), State.OK),
        (judging.leader("vm:1", -1.0), State.FAIL),
        (judging.leader(None, 0.0), State.FAIL),
        (judging.service("flow", "h:1", [], ""), State.OK),
        (judging.service("flow", "h:1", ["feed: behind"], ""), State.FAIL),
        (judging.service("flow", "h:1", None, "refused"), State.FAIL),
        (judging.no_services(), State.WARN),
        (judging.feed_lag("controller", 0.2), State.OK),
        (judging.feed_lag("controller", 60), State.FAIL),
        (judging.disk("/h", 50 * 2**30, 100 * 2**30), State.OK),
        (judging.disk("/h", 2**30, 100 * 2**30), State.WARN),
        (judging.disk("/h", 2**20, 100 * 2**30), State.FAIL),
        (judging.kubernetes("v1.35", 0.01, ""), State.OK),
        (judging.kubernetes("v1.35", 3.0, ""), State.WARN),
        (judging.kubernetes(None, 0.0, "refused"), State.FAIL),
    ],
)
def test_what_is_not_well_says_what_to_do_and_what_is_well_does_not(
    finding: Finding, state: State
) -> None:
    assert finding.state is state
    assert bool(finding.todo) == (state is not State.OK)


def test_a_newer_schema_is_not_to_be_migrated() -> None:
    assert "migrate" not in judging.schema("9999", "0001", "it is a newer one").todo.split("'")


def test_bounds_are_inclusive() -> None:
    bounds = Bounds(1, 2)

    assert [bounds.state(it) for it in (0.9, 1, 1.9, 2)] == [
        State.OK, State.WARN, State.WARN, State.FAIL,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["controller", "controller=h", "=h:1", "controller=h:x"])
def test_a_probe_that_is_none_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="must be like controller=HOST:PORT"):
        report.parse_probes(text)


def test_findings_are_told_for_people_and_for_programs() -> None:
    findings = [judging.leader(None, 0.0), judging.work(0, 0)]

    text = report.as_text(findings).splitlines()
    content = json.loads(report.as_json(findings))

    assert text[0] == "FAIL  scheduler leads: nobody does"
    assert text[1].startswith("      → ")
    assert text[2].startswith("ok    work: ")
    assert [one["state"] for one in content["checks"]] == ["FAIL", "ok"]

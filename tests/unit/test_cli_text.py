"""What the command line prints, and what it makes of time and phases. No server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hekla.api import document
from hekla.api.job import Job, JobCondition, JobState, JobStatus
from hekla.cli import kinds, logs, output, table
from hekla.client import Attempt, PodView
from hekla.client.waiting import DELETED, FINISHED_SOMEHOW, Verdict, verdict
from hekla.domain import ages
from hekla.domain.phases import JobPhase

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-60, "0s"),
        (0, "0s"),
        (62, "62s"),
        (180, "3m"),
        (190, "3m10s"),
        (121 * 60 + 56, "121m"),
        (5 * 3600 + 9, "5h"),
        (5 * 3600 + 7 * 60 + 9, "5h7m"),
        (12 * 3600 + 7 * 60, "12h"),
        (5 * 86400 + 7 * 60, "5d"),
        (5 * 86400 + 9 * 3600, "5d9h"),
        (531 * 86400, "531d"),
        ((5 * 365 + 89) * 86400, "5y89d"),
    ],
)
def test_spans_are_as_short_as_kubectls(seconds: int, expected: str) -> None:
    assert ages.span(timedelta(seconds=seconds)) == expected


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    text = table.table(["A", "BB"], [["longer", "x"], ["", "y"]])

    assert text.splitlines() == ["A        BB", "longer   x", "         y"]


def test_a_cell_cannot_break_the_layout() -> None:
    text = table.table(["A"], [["line\nbreak \x1b[31m"]])

    assert len(text.splitlines()) == 2
    assert "\x1b" not in text


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=6), plain, min_size=1))
def test_printed_yaml_is_read_back_as_it_was(content: dict[str, Any]) -> None:
    text = output.to_yaml({"kind": "X", "content": content})

    [found] = document.load(text.encode())

    assert found.value == {"kind": "X", "content": content}


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "1e3",
        "0o14",
        "1_0",
        "1:30",
        "2026-01-02",
        "yes",
        "No",
        "~",
        "null",
        "<<",
        ".5",
        "1.",
    ],
)
def test_a_text_stays_a_text_for_every_reader_of_yaml(text: str) -> None:
    assert output.to_yaml({"value": text}) != f"value: {text}\n"


def job(phase: JobPhase | None, *history: str, deleting: bool = False) -> Job:
    found = Job()
    metadata = found.metadata.model_copy(
        update={
            "name": "job-1",
            "namespace": "default",
            "deletion_timestamp": "2026-01-02T03:04:05Z" if deleting else None,
        }
    )
    status = JobStatus(
        state=JobState(phase=phase),
        conditions=[JobCondition(status=status) for status in history] or None,
    )
    return found.model_copy(update={"metadata": metadata, "status": status})


@pytest.mark.parametrize(
    ("found", "gone", "wanted", "expected"),
    [
        pytest.param(job(JobPhase.RUNNING), False, "Running", Verdict.MET, id="is in it"),
        pytest.param(
            job(JobPhase.COMPLETED, "Pending", "Running", "Completed"),
            False, "Running", Verdict.MET, id="was in it",
        ),
        pytest.param(job(None), False, "Pending", Verdict.MET, id="no phase yet is Pending"),
        pytest.param(job(JobPhase.RUNNING), False, "Completed", Verdict.OPEN, id="may come"),
        pytest.param(
            job(JobPhase.ABORTED), False, "Completed", Verdict.OPEN,
            id="a suspended job may be resumed",
        ),
        pytest.param(
            job(JobPhase.FAILED), False, "Completed", Verdict.IMPOSSIBLE, id="ended otherwise"
        ),
        pytest.param(
            job(JobPhase.TERMINATED), False, "Running", Verdict.IMPOSSIBLE,
            id="ended and never was in it",
        ),
        pytest.param(
            job(JobPhase.RUNNING), True, "Completed", Verdict.IMPOSSIBLE, id="was deleted"
        ),
        pytest.param(
            job(JobPhase.COMPLETED), True, "Completed", Verdict.MET,
            id="was in it when it was deleted",
        ),
        pytest.param(
            job(JobPhase.FAILED), False, FINISHED_SOMEHOW, Verdict.MET, id="ended somehow"
        ),
        pytest.param(
            job(JobPhase.ABORTED), False, FINISHED_SOMEHOW, Verdict.OPEN, id="is not at its end"
        ),
        pytest.param(job(JobPhase.RUNNING), True, DELETED, Verdict.MET, id="is gone"),
        pytest.param(
            job(JobPhase.COMPLETED), False, DELETED, Verdict.OPEN, id="finished, not yet gone"
        ),
    ],
)  # fmt: skip
def test_verdict(found: Job, *, gone: bool, wanted: str, expected: Verdict) -> None:
    assert verdict(found, wanted, gone=gone) is expected


def test_a_job_that_is_being_removed_says_so() -> None:
    assert kinds.job(job(JobPhase.RUNNING, deleting=True), NOW).row[2] == "Deleting"


def pod(task: str, index: int, *, run: int = 0) -> PodView:
    return PodView("default", "job-1", attempt(task, index, run=run))


def attempt(task: str, index: int, *, run: int = 0, **changes: Any) -> Attempt:
    given: dict[str, Any] = {
        "uid": f"{task}-{index}-{run}", "task": task, "index": index, "run": run,
        "job_version": 0, "pod_name": f"job-1-{task}-{index}", "pod_uid": f"pod-{run}",
        "phase": "Running", "ready": True, "node": "node-0", "reason": "", "outcome": "",
    }  # fmt: skip
    return Attempt(**{**given, **changes})


def test_logs_are_of_the_newest_run_of_each_place_in_order() -> None:
    pods = [pod("b", 0), pod("a", 10), pod("a", 2, run=1), pod("a", 2)]

    found = logs.chosen(pods, None, None)

    assert [(one.attempt.task, one.attempt.index, one.attempt.run) for one in found] == [
        ("a", 2, 1), ("a", 10, 0), ("b", 0, 0),
    ]  # fmt: skip
    assert [one.attempt.index for one in logs.chosen(pods, "a", 10)] == [10]
    assert logs.chosen(pods, "c", None) == []


@given(st.lists(st.binary(max_size=6)))
def test_however_a_log_is_cut_its_lines_come_whole_and_with_their_pod(
    pieces: list[bytes],
) -> None:
    lines = logs.Lines(b"[p] ")

    shown = b"".join([*map(lines.add, pieces), lines.end()])

    whole = b"".join(pieces)
    expected = whole[:-1].split(b"\n") if whole.endswith(b"\n") else whole.split(b"\n")
    assert shown == (b"".join(b"[p] " + line + b"\n" for line in expected) if whole else b"")


def test_an_attempt_shows_how_it_ended_and_how_long_it_took() -> None:
    found = attempt(
        "w", 1, outcome="Failed", exit_codes={"main": 3},
        started_at=NOW - timedelta(seconds=90), finished_at=NOW - timedelta(seconds=30),
    )  # fmt: skip

    row = dict(zip(kinds.ATTEMPTS.header, kinds.attempt(found, NOW).row, strict=True))

    assert (row["OUTCOME"], row["EXIT"], row["STARTED"], row["TOOK"]) == (
        "Failed", "3", "90s ago", "60s",
    )  # fmt: skip


def test_every_kinds_rows_fit_its_header() -> None:
    shown: list[tuple[output.Kind[Any], output.Shown]] = [
        (kinds.JOBS, kinds.job(job(None), NOW)),
        (kinds.PODS, kinds.pod(pod("a", 0), NOW)),
        (kinds.ATTEMPTS, kinds.attempt(attempt("a", 0), NOW)),
    ]

    assert all(len(kind.header) == len(one.row) for kind, one in shown)
    assert kinds.pod(pod("a", 0), NOW).content["spec"] == {"nodeName": "node-0"}

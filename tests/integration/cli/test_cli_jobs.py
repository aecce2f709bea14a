"""Running, watching and viewing jobs, against a controller over a real socket."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from hekla.cli import table
from hekla.cli.main import main
from hekla.client import Client, simple_job
from hekla.client.records import ChangeType
from hekla.domain.errors import PreconditionError, TimedOutError
from tests.support.commands import QUEUE, job, manifest, run, running, submit
from tests.support.controller import Controller, controller_at
from tests.support.waiting import wait_until


def test_run_makes_a_gang_of_one_container_from_flags(address: str, served: Controller) -> None:
    result = run(
        address, "job", "run", "train", "-i", "pytorch:2", "-r", "3", "-m", "2", "-q", "test",
        "-R", "cpu=2", "-L", "", "-e", "A=b=c", "--priority-class", "high", "--max-retry", "5",
        "--", "train.py", "--epochs", "3",
    )  # fmt: skip

    assert (result.exit_code, result.stdout) == (0, "job.batch.volcano.sh/train created\n")
    shown = json.loads(run(address, "job", "get", "train", "-o", "json").stdout)
    spec = shown["spec"]
    [task] = spec["tasks"]
    assert task["replicas"] == 3
    assert {name: spec[name] for name in ("minAvailable", "queue", "maxRetry")} == {
        "minAvailable": 2, "queue": "test", "maxRetry": 5,
    }  # fmt: skip
    assert spec["priorityClassName"] == "high"
    [container] = task["template"]["spec"]["containers"]
    assert container == {
        "name": "train",
        "image": "pytorch:2",
        "imagePullPolicy": "IfNotPresent",
        "command": ["train.py", "--epochs", "3"],
        "env": [{"name": "A", "value": "b=c"}],
        "resources": {"requests": {"cpu": "2"}},
    }


def test_run_without_a_name_has_one_made_of_the_image(address: str, served: Controller) -> None:
    result = run(address, "job", "run", "-i", "registry:5000/a/Busy_Box:1.36@sha256:0")

    assert result.stdout == "job.batch.volcano.sh/busy-box-0 created\n"


def test_a_dry_run_shows_what_apply_would_take_and_sends_nothing(
    address: str, served: Controller
) -> None:
    args = ("job", "run", "--name", "x", "--dry-run=client")

    shown = run(address, *args, "-o", "yaml", "--", "true").stdout
    told = run(address, *args).stdout

    assert (served.jobs, told) == ({}, "job.batch.volcano.sh/x created (dry run)\n")
    assert "status" not in yaml.safe_load(shown)
    applied = run(address, "apply", "-f", "-", stdin=shown)
    assert applied.stdout == "job.batch.volcano.sh/x created\n"


def test_run_takes_one_job_from_a_file_and_nothing_beside_it(
    address: str, tmp_path: Path
) -> None:
    (one := tmp_path / "one.yaml").write_text(manifest(job("one")))
    (two := tmp_path / "two.yaml").write_text(manifest(job("one"), QUEUE))

    made = run(address, "job", "run", "-f", str(one))
    both = run(address, "job", "run", "-f", str(one), "--image", "x")
    several = run(address, "job", "run", "-f", str(two))

    assert made.stdout == "job.batch.volcano.sh/one created\n"
    assert both.exit_code == 64
    assert "--image does not go with --filename" in both.stderr
    assert "must hold one Job and nothing else" in several.stderr


@pytest.mark.parametrize(("phase", "code"), [("Completed", 0), ("Failed", 1)])
def test_run_shows_all_that_is_printed_and_ends_as_the_job_does(
    address: str, served: Controller, phase: str, code: int
) -> None:
    with running(address, "job", "run", "x", "-r", "2", "--follow") as results:
        wait_until(lambda: served.watches, what="the watch")
        served.add_pod("x", "w", 0, b"a\nb")
        served.move("x", "Running")
        served.add_pod("x", "w", 1, b"c\n")
        served.move("x", phase)

    [result] = results
    assert result.exit_code == code
    assert sorted(result.stdout.splitlines()) == ["[x-w-0] a", "[x-w-0] b", "[x-w-1] c"]
    assert result.stderr.splitlines()[:2] == ["job.batch.volcano.sh/x created", "x: Pending"]


def test_following_the_logs_of_a_job_without_pods_waits_for_them(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)

    with running(address, "job", "logs", "job-1", "--follow") as results:
        wait_until(lambda: served.watches, what="the watch")
        served.add_pod("job-1", "w", 0, b"a\n")
        served.move("job-1", "Running")
        served.move("job-1", "Failed")

    assert (results[0].exit_code, results[0].stdout) == (0, "a\n")
    del served.pods[:]
    over = run(address, "job", "logs", "job-1", "--follow")
    assert over.stderr == "error: job default/job-1 has no pods any more; it is Failed\n"


def test_following_ends_as_soon_as_nobody_reads(address: str, served: Controller) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "hekla.cli.main", "job", "run", "x", "--follow"],
        env={**os.environ, "HEKLA_CONTROLLER": address},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    wait_until(lambda: served.watches, timeout=60, what="the watch")
    served.add_pod("x", "w", 0, *[b"tick\n"] * 5000)
    process.stdout.close()
    served.move("x", "Running")

    assert process.wait(timeout=30) == 141


def test_a_wait_for_a_job_that_failed_names_the_pod_that_failed_last(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)
    for index, second in ((0, 5), (1, 3)):
        served.add_pod("job-1", "w", index)
        attempt = served.pods[-1].attempt
        attempt.outcome, attempt.exit_codes["main"] = "Failed", 3 + index
        attempt.finished_at = f"2026-01-02T03:04:0{second}Z"
    served.move("job-1", "Failed")

    result = run(address, "job", "wait", "job-1", "--for", "Completed")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == (
        "error: job default/job-1 is Failed and will not be Completed:"
        " job-1-w-0 failed: main with 3"
    )


def test_run_waits_no_longer_than_told(address: str, served: Controller) -> None:
    result = run(address, "job", "run", "x", "--wait", "--timeout", "100ms")

    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "error: timed out after 100ms: job default/x is Pending"
    )


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["a", "b"], "'b': the command comes after '--'"),
        (["a", "--name", "b"], "NAME is a and --name is b: which one?"),
        (["--timeout", "3s"], "--timeout goes with --wait or --follow"),
        (["-e", "A"], "must be like NAME=VALUE, is 'A'"),
        (["-R", "cpu"], "must be like cpu=4,memory=8Gi, is 'cpu'"),
    ],
)
def test_what_cannot_be_meant_is_told_in_one_line(
    address: str, args: list[str], told: str
) -> None:
    result = run(address, "job", "run", *args)

    assert (result.exit_code, result.stdout) == (64, "")
    [line] = result.stderr.splitlines()
    assert told in line


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["-r", "-1"], "spec.tasks[0].replicas: must be >= 0, is -1"),
        (["--name", "A_b"], "metadata.name: "),
        (["-q", "Ü"], "spec.queue: "),
    ],
)
def test_a_job_that_is_none_is_told_by_its_fields(
    address: str, served: Controller, args: list[str], told: str
) -> None:
    result = run(address, "job", "run", *args)

    assert result.exit_code == 1
    assert told in result.stderr


def test_watch_prints_a_line_for_each_change_until_the_job_is_over(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)

    with running(address, "job", "watch", "job-1") as results:
        wait_until(lambda: served.watches, what="the watch")
        served.move("job-1", "Running")
        served.move("job-1", "Completed")

    lines = [line.split()[:3] for line in results[0].stdout.splitlines()]
    assert lines == [
        ["NAME", "QUEUE", "PHASE"],
        ["job-1", "test", "Pending"],
        ["job-1", "test", "Running"],
        ["job-1", "test", "Completed"],
    ]


def test_watch_shows_only_what_is_asked_for_and_each_to_its_end(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client, "one")
    submit(served, client, "two")
    args = ("job", "watch", "--phase", "Running", "-o", "json")
    process = subprocess.Popen(
        [sys.executable, "-m", "hekla.cli.main", *args],
        env={**os.environ, "HEKLA_CONTROLLER": address},
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: served.watches, timeout=60, what="the watch")

    served.move("one", "Running")
    served.move("two", "Failed")
    served.move("one", "Completed")
    served.remove("one")

    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    process.kill()
    assert process.communicate(timeout=30)[0] == "", "and it goes on until somebody ends it"
    shown = [json.loads(line) for line in lines]
    assert [(one["metadata"]["name"], one["status"]["state"]["phase"]) for one in shown] == [
        ("one", "Running"), ("one", "Completed"), ("one", "Completed"),
    ]  # fmt: skip


def test_watching_a_job_that_is_not_there_says_so(address: str) -> None:
    result = run(address, "job", "watch", "job-9")

    assert (result.exit_code, result.stderr) == (1, "error: job default/job-9 does not exist\n")


def test_live_lists_outlive_cursors_and_miss_no_deletion(
    served: Controller, client: Client
) -> None:
    submit(served, client, "one")
    submit(served, client, "two")
    changes = client.jobs.changes("default")

    def told() -> tuple[str, str]:
        change = next(changes)
        assert change.object is not None
        return change.type, change.object.metadata.name

    assert [told(), told()] == [("ADDED", "one"), ("ADDED", "two")]
    served.remove("one")
    served.move("two", "Running")
    served.forget_changes()
    assert [told(), told()] == [("DELETED", "one"), ("MODIFIED", "two")]


def test_a_watch_that_was_ended_for_reading_slowly_is_resumed_where_it_was(
    served: Controller, client: Client
) -> None:
    served.crowded = 2
    submit(served, client)

    changes = client.jobs.watch("default")
    seen = [next(changes)]
    for phase in ("Running", "Completed"):
        served.move("job-1", phase)
        seen.append(next(changes))

    assert [change.cursor for change in seen] == ["1", "2", "3"]
    assert served.watches == 3


def test_view_tells_state_tasks_history_and_events(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)
    served.move("job-1", "Running")

    shown = run(address, "job", "view", "-N", "job-1").stdout

    assert "Phase:          Running" in shown
    assert "Minimum:        1 of 1 pods together" in shown
    assert [line.split() for line in shown.splitlines() if "nginx" in line] == [
        ["nginx", "1", "-", "-", "-", "-"]
    ]
    assert "was Pending" in shown


def test_wide_shows_more_columns(address: str, served: Controller, client: Client) -> None:
    submit(served, client)

    narrow = run(address, "job", "list").stdout.splitlines()[0].split()
    wide = run(address, "job", "list", "-o", "wide").stdout.splitlines()[0].split()

    assert wide[: len(narrow)] == narrow
    assert wide[-1] == "MESSAGE"


def test_queues_are_opened_closed_and_weighed(address: str, served: Controller) -> None:
    run(address, "queue", "create", "q")

    assert (
        run(address, "queue", "close", "q").stdout
        == "queue.scheduling.volcano.sh/q is Closed\n"
    )
    assert run(address, "queue", "open", "-n", "q").stdout == (
        "queue.scheduling.volcano.sh/q is Open\n"
    )
    weighed = run(address, "queue", "operate", "q", "-a", "update", "-w", "7")
    assert weighed.stdout == "queue.scheduling.volcano.sh/q updated\n"
    assert served.queues["q"].spec.weight == 7
    none = run(address, "queue", "operate", "q", "-a", "update", "-w", "0")
    assert none.stderr == "error: spec.weight: must be >= 1, is 0\n"
    assert run(address, "queue", "operate", "q", "-a", "update").exit_code == 64


def test_names_complete_to_those_there_are_and_to_nothing_without_a_service(
    address: str, served: Controller, client: Client, tmp_path: Path
) -> None:
    submit(served, client, "alpha")
    submit(served, client, "beta")

    def complete(words: str, controller: str) -> list[str]:
        count = len(words.split()) - 1 + words.endswith(" ")
        env = {
            "_HEKLA_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(count),
            "HEKLA_CONTROLLER": controller,
        }
        done = CliRunner().invoke(main, [], env=env, prog_name="hekla")
        return [line.partition(",")[2] for line in done.stdout.splitlines() if line]

    assert complete("hekla job get ", address) == ["alpha", "beta"]
    assert complete("hekla job wait a", address) == ["alpha"]
    assert complete("hekla job get -n other ", address) == []
    assert complete("hekla job get ", f"unix:{tmp_path}/nobody") == []
    assert "resume" in complete("hekla job re", address)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(address: str, shell: str) -> None:
    result = run(address, "completion", shell)

    assert result.exit_code == 0
    assert "_HEKLA_COMPLETE" in result.stdout


def test_waits_of_the_client_end_in_words_of_the_domain(
    served: Controller, client: Client
) -> None:
    submit(served, client)
    soon = timedelta(milliseconds=100)

    with pytest.raises(TimedOutError, match="timed out after 100ms: job default/job-1 is Pend"):
        client.jobs.wait("default", "job-1", "Running", timeout=soon)
    served.move("job-1", "Failed")
    assert client.jobs.wait("default", "job-1", "Finished").status.state.phase == "Failed"
    with pytest.raises(PreconditionError, match="is Failed and will not be Completed"):
        client.jobs.wait("default", "job-1", "Completed")
    remover = threading.Thread(target=lambda: served.remove("job-1"))
    remover.start()
    client.jobs.wait("default", "job-1", "Deleted", timeout=timedelta(seconds=20))
    remover.join()
    client.jobs.wait("default", "job-1", "Deleted")


def test_a_list_reads_no_more_pages_than_it_is_limited_to(
    served: Controller, client: Client
) -> None:
    for number in range(5):
        submit(served, client, f"job-{number}")

    found = client.jobs.list("default", limit=2)

    assert [one.metadata.name for one in found.items] == ["job-0", "job-1"]


def test_watch_goes_on_when_the_controller_comes_back(tmp_path: Path) -> None:
    served, listen = Controller(), f"unix:{tmp_path}/s"
    with Client(addresses={"controller": listen}) as client:
        with controller_at(listen, served):
            client.jobs.create(simple_job("job-1"))
            changes = client.jobs.changes("default", on_outage=lambda _error: None)
            assert next(changes).type is ChangeType.ADDED
        served.move("job-1", "Running")
        with controller_at(listen, served):
            assert next(changes).type is ChangeType.MODIFIED


def test_wide_characters_keep_columns_in_line() -> None:
    text = table.table(["A", "B"], [["日本", "x"], ["ab", "y"]])

    assert text.splitlines() == ["A      B", "日本   x", "ab     y"]

"""The supervisor with real processes that are not ours: its promises, one by one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hekla.domain.errors import PreconditionError, UnavailableError
from hekla.local.stack.endpoints import Home, write_private
from hekla.local.supervisor import control, processes
from hekla.local.supervisor.unit import UnitSpec
from tests.support.waiting import wait_until

SLEEP = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")
STUBBORN = (
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    " print('up', flush=True); time.sleep(600)",
)

Start = Callable[[Sequence[UnitSpec]], subprocess.Popen[bytes]]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    found = Home(tmp_path / ("a folder with a name as long as some are " + "x" * 80))
    found.make()
    yield found
    processes.end_units(found.folder, stop_signals={}, grace=0.5)


@pytest.fixture
def start(home: Home) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def run(units: Sequence[UnitSpec]) -> subprocess.Popen[bytes]:
        content = {"options": {"nodes": 3}, "units": [unit.to_dict() for unit in units]}
        write_private(home.run / "stack.json", content)
        environ = {**os.environ, "HEKLA_HOME": str(home.folder), "HEKLA_UNIT": ""}
        with home.log("supervisor").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "hekla.local.stack.supervise", f"--home={home.folder}"],
                env=environ,
                stderr=log,
            )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.wait(20)


def units(home: Home) -> Mapping[str, Mapping[str, Any]]:
    try:
        found = control.call(home.run, {"op": "status"})["units"]
    except UnavailableError:
        return {}
    return {unit["name"]: unit for unit in found}


def running(home: Home, name: str) -> int | None:
    """The pid of a unit that runs and has said so."""
    unit = units(home).get(name, {})
    log = home.log(name)
    said = log.exists() and "up" in log.read_text()
    return unit["pid"] if unit.get("state") == "RUNNING" and said else None


def up(home: Home, name: str) -> int:
    """Wait until a unit runs; its pid."""
    return wait_until(lambda: running(home, name) or 0, what=name)


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists() or processes._zombie(pid)


def test_what_dies_is_started_again_and_the_status_says_so(home: Home, start: Start) -> None:
    start([UnitSpec(name="one", argv=SLEEP)])
    pid = up(home, "one")

    os.kill(pid, signal.SIGKILL)

    told = wait_until(
        lambda: next((u for u in units(home).values() if u["last_exit"]), {}), what="its death"
    )
    assert told["last_exit"] == "killed by SIGKILL"
    if told["state"] == "BACKOFF":  # it may be over before anybody asks
        assert 0 < told["retry_in"] <= 1
    again = wait_until(
        lambda: next((u for u in units(home).values() if u["pid"] not in (None, pid)), {}),
        what="another",
    )
    assert again["restarts"] == 1


def test_the_end_stops_everything_in_the_order_of_ranks(home: Home, start: Start) -> None:
    log = home.folder / "order"
    argv = (
        sys.executable,
        "-c",
        "import signal, sys, time\n"
        "def end(*_):\n"
        "    open(sys.argv[2], 'a').write(sys.argv[1] + '\\n'); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(600)",
    )
    names = ["third", "first", "second"]
    ranks = {"first": 0, "second": 1, "third": 2}
    process = start([UnitSpec(name=n, argv=(*argv, n, str(log)), rank=ranks[n]) for n in names])
    for name in names:
        up(home, name)

    control.call(home.run, {"op": "down"})

    assert process.wait(20) == 0
    assert log.read_text().split() == ["first", "second", "third"]
    assert not (home.run / "stack.json").exists()
    assert processes.units_of(home.folder) == []


def test_a_unit_that_ignores_the_signal_is_killed(home: Home, start: Start) -> None:
    start([UnitSpec(name="one", argv=STUBBORN, stop_timeout=0.2)])
    pid = up(home, "one")

    control.call(home.run, {"op": "stop", "unit": "one"})

    wait_until(lambda: gone(pid), what="its end")
    assert wait_until(lambda: units(home)["one"]["state"] == "STOPPED", what="the state")


def test_stop_and_start_by_request(home: Home, start: Start) -> None:
    start([UnitSpec(name="one", argv=SLEEP), UnitSpec(name="one-2", argv=SLEEP)])
    up(home, "one")
    up(home, "one-2")

    assert control.call(home.run, {"op": "stop", "unit": "one"})["units"] == ["one", "one-2"]
    wait_until(
        lambda: {unit["state"] for unit in units(home).values()} == {"STOPPED"}, what="the stop"
    )
    control.call(home.run, {"op": "start", "unit": "one-2"})

    up(home, "one-2")
    assert units(home)["one"]["state"] == "STOPPED"


def test_environment_given_to_a_start_is_forgotten_after_a_death(
    home: Home, start: Start
) -> None:
    argv = (
        sys.executable,
        "-c",
        "import os, time; print('up', os.environ.get('POINT'), flush=True); time.sleep(600)",
    )
    start([UnitSpec(name="one", argv=argv)])
    up(home, "one")
    log = home.log("one")
    control.call(home.run, {"op": "stop", "unit": "one"})

    control.call(home.run, {"op": "start", "unit": "one", "env": {"POINT": "here"}})
    wait_until(lambda: "up here" in log.read_text(), what="the start with it")
    os.kill(wait_until(lambda: units(home)["one"]["pid"], what="its pid"), signal.SIGKILL)

    wait_until(
        lambda: log.read_text().splitlines()[2:] == ["up None"], what="the start without"
    )


def test_units_die_with_their_supervisor_however_it_dies(home: Home, start: Start) -> None:
    process = start([UnitSpec(name="one", argv=SLEEP)])
    pid = up(home, "one")

    process.kill()

    wait_until(lambda: gone(pid), what="its end")
    assert not control.alive(home.run)
    with pytest.raises(UnavailableError, match="does not answer"):
        control.call(home.run, {"op": "status"})


def test_what_outlived_a_supervisor_is_found_and_ended(home: Home, start: Start) -> None:
    start([UnitSpec(name="one", argv=STUBBORN)])
    pid = up(home, "one")
    os.kill(control.call(home.run, {"op": "status"})["pid"], signal.SIGKILL)
    wait_until(lambda: not control.alive(home.run), what="the supervisor's end")

    left = processes.end_units(home.folder, stop_signals={}, grace=0.2)

    assert left == 1
    assert gone(pid)


def test_there_is_only_one_supervisor_of_a_home(home: Home, start: Start) -> None:
    start([UnitSpec(name="one", argv=SLEEP)])
    up(home, "one")

    second = start([UnitSpec(name="other", argv=SLEEP)])

    assert second.wait(20) == 0
    assert list(units(home)) == ["one"]


def test_a_program_that_is_not_there_is_a_death_like_any_other(
    home: Home, start: Start
) -> None:
    start([UnitSpec(name="one", argv=("/nowhere/at/all",))])

    unit = wait_until(
        lambda: int(units(home).get("one", {}).get("failures", 0)), what="a failure"
    )

    assert unit >= 1
    assert "No such file" in units(home)["one"]["last_exit"]


def test_a_request_that_is_none_is_refused_and_the_next_is_answered(
    home: Home, start: Start
) -> None:
    start([UnitSpec(name="one", argv=SLEEP)])
    wait_until(lambda: units(home), what="the supervisor")

    with pytest.raises(PreconditionError, match="no such request: 'dance'"):
        control.call(home.run, {"op": "dance"})
    with pytest.raises(PreconditionError, match="no service named two; there are one"):
        control.call(home.run, {"op": "stop", "unit": "two"})

    assert list(units(home)) == ["one"]


def test_a_log_that_has_grown_is_put_aside_at_the_next_start(tmp_path: Path) -> None:
    log = tmp_path / "one.log"
    for round_ in range(5):
        log.write_text(f"{round_} {'x' * 100}")
        processes.rotate(log, limit=50, keep=2)

    kept = {path.name: path.read_text()[0] for path in tmp_path.iterdir()}
    assert kept == {"one.log.1": "4", "one.log.2": "3"}


def test_only_the_homes_own_processes_are_its(home: Home, tmp_path: Path) -> None:
    environ = {**os.environ, "HEKLA_UNIT": "one", "HEKLA_HOME": str(tmp_path / "other")}
    other = subprocess.Popen(SLEEP, env=environ, stdout=subprocess.DEVNULL)
    pod = subprocess.Popen(
        SLEEP,
        env={**environ, "HEKLA_HOME": str(home.folder), "HEKLA_POD_UID": "u"},
        stdout=subprocess.DEVNULL,
    )
    try:
        assert processes.units_of(home.folder) == []
    finally:
        for process in (other, pod):
            process.kill()
            process.wait()


def test_the_file_of_units_comes_back_as_json(home: Home, start: Start) -> None:
    start([UnitSpec(name="one", argv=SLEEP)])
    wait_until(lambda: units(home), what="the supervisor")

    found = control.call(home.run, {"op": "status"})

    assert found["options"] == {"nodes": 3}
    assert json.loads((home.run / "stack.json").read_text())["units"][0]["name"] == "one"

"""``hekla up`` and ``hekla down``: bring the stack of a home folder up, and leave nothing."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from hekla.client import endpoints
from hekla.client.endpoints import HOME_VARIABLE
from hekla.domain.errors import (
    DomainError,
    InvalidError,
    PreconditionError,
    UnavailableError,
)
from hekla.local.runtimes.strays import kill_strays
from hekla.local.settings import NOTE
from hekla.local.stack import plan, readiness, second_door
from hekla.local.stack.endpoints import Home, choose_ports, remembered_ports, write_private
from hekla.local.supervisor import control, processes
from hekla.local.supervisor.unit import HOPELESS, State

LOOK: Final = 0.1
"""Seconds between looks while waiting."""
TOO_MANY_FAILURES: Final = 3
_KUBECTL: Final = "custom resources"
"""How users are told of what works once all units do."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asks for: only what was named, so that all else may be as it is."""

    options: Mapping[str, Any] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    """One unit, as ``hekla status`` shows it."""

    name: str
    state: str
    pid: int | None
    up: float | None
    restarts: int
    problem: str | None
    """Why it is not ready; None if it is."""
    address: str
    note: str = ""
    """What else users should know of it."""


def up(
    home: Home,
    asked: Asked,
    *,
    environ: Mapping[str, str],
    report: Report,
    timeout: float = 90.0,
) -> bool:
    """Bring up what is missing and wait until all is ready; return whether all was down before.

    What a first start cannot bring up entirely it takes down again.

    Raises:
        PreconditionError: what runs was started with other options; or the folder is of no use.
        UnavailableError: something does not start, or not in time.
    """
    home.make()
    with _one_at_a_time(home, report):
        if _joined(home, asked):
            _await_ready(home, report, timeout)
            return False
        try:
            _launch(home, asked, environ, report)
            _await_ready(home, report, timeout)
        except BaseException:  # also Ctrl-C must not leave half a stack
            with contextlib.suppress(DomainError):
                _take_down(home, report=lambda _line: None)
            raise
        return True


def down(home: Home, *, report: Report, purge: bool = False) -> bool:
    """Stop everything of a home; return whether there was anything.

    Raises:
        PreconditionError: something does not end even when it is killed.
    """
    if not home.folder.is_dir():
        return False
    home.make()
    with _one_at_a_time(home, report):
        found = _take_down(home, report)
        if purge:
            shutil.rmtree(home.folder, ignore_errors=True)
        return found


def status(home: Home) -> Sequence[Standing] | None:
    """How each unit stands, or None if no supervisor runs."""
    if not control.alive(home.run):
        return None
    try:
        units = _units(home)
    except UnavailableError:
        if _ends(home):
            return None
        raise
    ports = remembered_ports(home)
    return [
        Standing(
            name=unit["name"],
            state=unit["state"],
            pid=unit["pid"],
            up=unit["up"],
            restarts=unit["restarts"],
            problem=readiness.why_not(unit, home, ports),
            address=_address(unit["name"], ports),
            note=_note(home) if unit["name"] == plan.CLUSTER else "",
        )
        for unit in units
        if unit["state"] != State.DONE
    ]


def stop(home: Home, service: str, *, timeout: float = 40.0) -> Sequence[str]:
    """Stop a service and its replicas; return which units those are, once they are gone."""
    names = _ask(home, {"op": "stop", "unit": service})["units"]
    deadline = time.monotonic() + timeout
    while any(unit["pid"] is not None for unit in _units(home) if unit["name"] in names):
        if time.monotonic() > deadline:
            raise UnavailableError(f"{service} did not stop within {timeout:.0f} s")
        time.sleep(LOOK)
    return names  # type: ignore[no-any-return]


def start(
    home: Home, service: str, *, env: Mapping[str, str] | None = None, timeout: float = 60.0
) -> Sequence[str]:
    """Start a service and its replicas; return which units those are, once they are ready.

    ``env`` is added to their environment until they die.
    """
    names = _ask(home, {"op": "start", "unit": service, "env": dict(env or {})})["units"]
    _await_ready(home, lambda _line: None, timeout, only=names)
    return names  # type: ignore[no-any-return]


def _ask(home: Home, request: Mapping[str, Any]) -> Mapping[str, Any]:
    if not control.alive(home.run):
        raise UnavailableError(f"hekla is not up in {home.folder}; start it with 'hekla up'")
    return control.call(home.run, request)


def _ends(home: Home) -> bool:
    """Whether a supervisor that gave no answer did so because it ends."""
    deadline = time.monotonic() + 1.0  # a dying process' socket is gone before its lock is
    while control.alive(home.run):
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK / 5)
    return True


def _units(home: Home) -> Sequence[Mapping[str, Any]]:
    return _ask(home, {"op": "status"})["units"]  # type: ignore[no-any-return]


def _note(home: Home) -> str:
    try:
        return (home.cluster / NOTE).read_text().strip()
    except OSError:
        return ""


def _address(name: str, ports: Mapping[str, int]) -> str:
    purpose = plan.KUBERNETES if name == plan.CLUSTER else name
    return f"127.0.0.1:{ports[purpose]}" if purpose in ports else ""


def _joined(home: Home, asked: Asked) -> bool:
    """Let a supervisor that runs start what is missing; False if there is none."""
    while control.alive(home.run):
        try:
            found = control.call(home.run, {"op": "status"})
        except UnavailableError:
            if _ends(home):
                return False
            raise
        if found["ending"]:
            time.sleep(LOOK)
            continue
        plan.refuse_differences(found["options"], asked.options)
        _refuse_other_ports(home, asked)
        control.call(home.run, {"op": "start"})
        return True
    return False


def _refuse_other_ports(home: Home, asked: Asked) -> None:
    kept = remembered_ports(home)
    for purpose, port in asked.ports.items():
        if kept.get(purpose) != port:
            raise PreconditionError(
                f"already up with port {kept.get(purpose)} for {purpose}, not {port};"
                " 'hekla down' first"
            )


def _launch(home: Home, asked: Asked, environ: Mapping[str, str], report: Report) -> None:
    left = processes.end_units(home.folder, stop_signals=plan.STOP_SIGNALS)
    if left:
        report(f"ended {left} processes of a supervisor that had died")
    try:
        known, _ = plan.load(home)  # it died, or it would have removed this
    except PreconditionError:
        known = {}
    options = plan.merged(known, asked.options)
    if _had_crds(home) and not options.crds:
        raise PreconditionError(
            f"{home.folder} holds custom resources: leave out --no-crds, or remove all that is"
            " in it with 'hekla down --purge'"
        )
    ports = choose_ports(home, plan.purposes(options), asked.ports)
    write_private(home.endpoints, plan.endpoints(home, options, ports))
    plan.save(home, options, plan.specs(home, options, ports))
    with contextlib.suppress(FileNotFoundError):
        home.kubeconfig.unlink()
    home.kubeconfig.symlink_to(plan.kubeconfig(home).relative_to(home.folder))
    log = home.log("supervisor")
    processes.rotate(log)
    processes.detach(
        (sys.executable, "-m", "hekla.local.stack.supervise", f"--home={home.folder}"),
        env=_environment(home, environ),
        log=log,
    )


def _environment(home: Home, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The supervisor's environment, and so that of all it runs."""
    # Whoever starts us from inside a pod does not make our processes the pod's.
    kept = {name: value for name, value in environ.items() if name != processes.POD_VARIABLE}
    return {**kept, HOME_VARIABLE: str(home.folder), processes.UNIT_VARIABLE: ""}


def _await_ready(
    home: Home, report: Report, timeout: float, only: Sequence[str] | None = None
) -> None:
    begun = time.monotonic()
    ports = remembered_ports(home)
    reported: set[str] = set()
    door = _KUBECTL if only is None and _had_crds(home) else ""
    while True:
        problems: dict[str, str] = {}
        for unit in _look(home, begun):
            name = str(unit["name"])
            if only is not None and name not in only:
                continue
            problem = readiness.why_not(unit, home, ports)
            if problem is not None:
                problems[name] = problem
                _give_up_on(unit, home)
            elif name not in reported:
                reported.add(name)
                report(f"{name} ready ({time.monotonic() - begun:.1f} s)")
        if door and not problems and reported:
            problem = second_door.why_not(ports[plan.KUBERNETES])
            if problem is None:
                report(f"{door} ready ({time.monotonic() - begun:.1f} s)")
            else:
                problems[door] = problem
        if not problems and reported:
            return
        if time.monotonic() - begun > timeout:
            waiting = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
            raise UnavailableError(f"not ready after {timeout:.0f} s: {waiting}")
        time.sleep(LOOK)


def _had_crds(home: Home) -> bool:
    """Whether what runs, or ran last, has custom resources."""
    try:
        return bool((endpoints.load(home.folder) or {}).get("crds"))
    except InvalidError:
        return False


def _look(home: Home, begun: float) -> Sequence[Mapping[str, Any]]:
    """The units; none while the supervisor itself is starting."""
    try:
        return control.call(home.run, {"op": "status"})["units"]  # type: ignore[no-any-return]
    except UnavailableError:
        if time.monotonic() - begun > 10 and not control.alive(home.run):
            words = readiness.last_words(home.log("supervisor"))
            raise UnavailableError(f"the supervisor does not run: {words}") from None
        return []


def _give_up_on(unit: Mapping[str, Any], home: Home) -> None:
    """Stop waiting for what fails again and again.

    Raises:
        UnavailableError: it does; the message has its last words.
    """
    at_once = unit["once"] or unit["last_exit"] == f"exit code {HOPELESS}"
    if unit["failures"] >= (1 if at_once else TOO_MANY_FAILURES):
        log = home.log(unit["name"])
        words = readiness.last_words(log) or unit["last_exit"]
        raise UnavailableError(f"{unit['name']} does not start: {words} (see {log})")


def _take_down(home: Home, report: Report) -> bool:
    found = control.alive(home.run)
    if found:
        report("stopping")
        with contextlib.suppress(DomainError):
            control.call(home.run, {"op": "down"})
            _await_end(home)
    # Whatever a supervisor that died or hangs has left. Pods last: their cluster would mind.
    left = processes.end_units(home.folder, stop_signals=plan.STOP_SIGNALS)
    kill_strays(home.folder)
    plan.forget(home)
    return found or left > 0


def _await_end(home: Home, timeout: float = 60.0) -> None:
    deadline = time.monotonic() + timeout
    while control.alive(home.run) and time.monotonic() < deadline:
        time.sleep(LOOK / 2)


@contextmanager
def _one_at_a_time(home: Home, report: Report) -> Iterator[None]:
    with (home.run / "up.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another 'hekla up' or 'hekla down'")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def follow(home: Home, *, report: Report) -> None:
    """Tell what happens to the units, until the supervisor has ended."""
    before: dict[str, int] = {}
    while control.alive(home.run):
        with contextlib.suppress(DomainError):
            for unit in control.call(home.run, {"op": "status"})["units"]:
                name, restarts = str(unit["name"]), int(unit["restarts"])
                if restarts > before.setdefault(name, restarts):
                    report(f"{name} died ({unit['last_exit']}) and is started again")
                before[name] = restarts
        time.sleep(5 * LOOK)

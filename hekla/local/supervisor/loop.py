"""The supervisor: one thread that reaps, starts, stops and answers."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from hekla.domain.errors import PreconditionError
from hekla.local.supervisor import control, processes, unit
from hekla.local.supervisor.unit import Step, Unit, UnitSpec

LONGEST_WAIT: Final = 5.0

log = logging.getLogger(__name__)


class Supervisor:
    """Runs units until it is told to end."""

    def __init__(
        self,
        *,
        run: Path,
        log_of: Callable[[str], Path],
        specs: Sequence[UnitSpec],
        options: Mapping[str, Any],
        environ: Mapping[str, str],
        after_rank: Mapping[int, Callable[[], None]],
    ) -> None:
        """Take what to run.

        Args:
            run: the folder of the control socket.
            log_of: where the output of a unit goes.
            specs: the units.
            options: what the units were made from; told to who asks for the status.
            environ: every unit's environment, before its own.
            after_rank: what to do at the end once the units of a rank have stopped.
        """
        self._run = run
        self._log_of = log_of
        self._specs = {spec.name: spec for spec in specs}
        self._options = options
        self._environ = environ
        self._after_rank = dict(after_rank)
        self._units = {spec.name: Unit() for spec in specs}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._once: dict[str, Mapping[str, str]] = {}
        """Environment for a unit's next start only."""
        self._ending = False

    def run(self) -> None:
        """Run the units; return when all have stopped after an order to end."""
        with (
            control.listening(self._run) as listener,
            _signals() as (wakeup, told),
            selectors.DefaultSelector() as selector,
        ):
            selector.register(listener, selectors.EVENT_READ)
            selector.register(wakeup, selectors.EVENT_READ)
            while True:
                self._ending = self._ending or bool(told)
                self._reap()
                self._advance()
                if self._ending and not self._processes and not self._after_rank:
                    return
                for key, _ in selector.select(self._wait()):
                    if key.fileobj is listener:
                        control.serve_one(listener, self._answer)
                    else:
                        with contextlib.suppress(BlockingIOError):
                            wakeup.recv(4096)

    def _reap(self) -> None:
        now = time.monotonic()
        for name, process in list(self._processes.items()):
            code = process.poll()
            if code is None:
                continue
            del self._processes[name]
            # Children that a killed process left are of no use to anybody.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            how = _how(code)
            self._units[name] = unit.exited(
                self._specs[name], self._units[name], how, well=code == 0, now=now
            )
            log.info("exited", extra={"unit": name, "pid": process.pid, "how": how})

    def _advance(self) -> None:
        if self._ending:
            self._stop_next_rank()
        now = time.monotonic()
        for name, spec in self._specs.items():
            ready = unit.ready(spec, self._specs, self._units)
            match unit.step(spec, self._units[name], ready=ready, now=now):
                case Step.START:
                    self._start(spec, now)
                case Step.SIGNAL:
                    processes.send(self._processes[name].pid, signal.Signals[spec.stop_signal])
                    processes.send(self._processes[name].pid, signal.SIGCONT)
                    self._units[name] = unit.signalled(self._units[name], now)
                case Step.KILL:
                    log.warning("does not stop, is killed", extra={"unit": name})
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(self._processes[name].pid, signal.SIGKILL)
                    self._units[name] = unit.killed(self._units[name])
                case Step.NOTHING:
                    pass

    def _stop_next_rank(self) -> None:
        """Let the units of the lowest rank that has any left stop; none starts again."""
        ranks = sorted({spec.rank for spec in self._specs.values()} | set(self._after_rank))
        for rank in ranks:
            members = [spec.name for spec in self._specs.values() if spec.rank <= rank]
            for name in members:
                self._units[name] = unit.unwant(self._units[name])
            if any(name in self._processes for name in members):
                return
            if rank in self._after_rank:
                self._after_rank.pop(rank)()

    def _start(self, spec: UnitSpec, now: float) -> None:
        env = {
            **self._environ,
            **spec.env,
            **self._once.pop(spec.name, {}),
            processes.UNIT_VARIABLE: spec.name,
        }
        output = self._log_of(spec.name)
        try:
            processes.rotate(output)
            process = processes.spawn(spec.argv, env=env, log=output)
        except OSError as error:
            log.error("cannot start", extra={"unit": spec.name, "reason": str(error)})
            failed = unit.started(self._units[spec.name], 0, now)
            self._units[spec.name] = unit.exited(spec, failed, str(error), well=False, now=now)
            return
        self._processes[spec.name] = process
        self._units[spec.name] = unit.started(self._units[spec.name], process.pid, now)
        log.info("started", extra={"unit": spec.name, "pid": process.pid})

    def _wait(self) -> float:
        """Seconds until something is due by itself."""
        now = time.monotonic()
        times = (unit.wake_at(self._specs[name], state) for name, state in self._units.items())
        # What is due but not started waits for another unit; that one's end wakes the loop.
        return min([LONGEST_WAIT, *(at - now for at in times if at is not None and at > now)])

    def _answer(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        match request.get("op"):
            case "status":
                return self._status()
            case "down":
                self._ending = True
                return {}
            case "start" | "stop" if self._ending:
                raise PreconditionError("hekla is going down")
            case "start":
                env = {str(key): str(value) for key, value in request.get("env", {}).items()}
                return {"units": self._want(request, env)}
            case "stop":
                names = self._named(request)
                for name in names:
                    self._units[name] = unit.unwant(self._units[name])
                return {"units": names}
            case other:
                raise PreconditionError(f"no such request: {other!r}")

    def _want(self, request: Mapping[str, Any], env: Mapping[str, str]) -> Sequence[str]:
        names = list(self._specs) if request.get("unit") is None else self._named(request)
        for name in names:
            if env:
                self._once[name] = env
            self._units[name] = unit.want(self._units[name])
        return names

    def _named(self, request: Mapping[str, Any]) -> list[str]:
        asked = str(request.get("unit"))
        found = unit.named(asked, self._specs)
        if not found:
            known = ", ".join(name for name, spec in self._specs.items() if not spec.once)
            raise PreconditionError(f"no service named {asked}; there are {known}")
        return found

    def _status(self) -> Mapping[str, Any]:
        now = time.monotonic()
        return {
            "pid": os.getpid(),
            "ending": self._ending,
            "options": dict(self._options),
            "units": [
                {
                    "name": name,
                    "state": str(unit.state(found, now)),
                    "once": self._specs[name].once,
                    "pid": found.pid,
                    "up": now - found.started if found.pid is not None else None,
                    "restarts": found.restarts,
                    "failures": found.failures,
                    "retry_in": max(0.0, found.not_before - now),
                    "last_exit": found.last_exit,
                }
                for name, found in self._units.items()
            ],
        }


def _how(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


@contextmanager
def _signals() -> Iterator[tuple[socket.socket, list[int]]]:
    """A socket that is readable after a signal, and a list of those that mean the end."""
    told: list[int] = []
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.settimeout(0.0)
        writer.settimeout(0.0)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        handlers = {
            number: signal.signal(number, lambda number, _frame: told.append(number))
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        }
        handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            yield reader, told
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(before)

"""Containers that only pretend: they start, last as long as their pod says, and end.

All pods share one heap of times and one timer. The pod says what happens by annotations:
``hekla.io/simulate-duration`` and ``hekla.io/simulate-exit-code``. Init containers end well at
once, sidecars last as long as the others. A pod waits for the objects that it needs, as it
would if it ran.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from hekla.domain import duration, names, timestamps
from hekla.domain.errors import InvalidError
from hekla.local.kinds.registry import Kind, Object
from hekla.local.nodes import pod_status
from hekla.local.nodes.kubelet import Kubelet, PodRef, Report
from hekla.local.nodes.pod_status import Container, Running, Terminated, Waiting
from hekla.local.runtimes import environment, volumes
from hekla.local.runtimes.environment import ConfigError, Lookup, Place

_BATCH: Final = 500
_BACKOFF_FIRST: Final = 1.0
_BACKOFF_LONGEST: Final = 60.0
_TERMINATED: Final = 143
_RETRY: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Script:
    """What a pod wants to happen."""

    policy: str
    containers: tuple[str, ...]
    inits: tuple[str, ...]
    sidecars: tuple[str, ...]
    lasts: float
    exit_code: int
    problem: str = ""


@dataclass(slots=True)
class _Pod:
    ref: PodRef
    script: _Script
    container: Container
    """All containers of a pod do the same."""
    needs: Callable[[], Waiting | None] | None = None
    """What it still waits for, if anything could be missing."""
    turn: int = 0
    """Which entry of the heap is its own; earlier ones are void."""
    stopping: bool = False


class SimulateRuntime:
    """The pretence."""

    def __init__(
        self,
        kubelet: Kubelet,
        *,
        start_delay: timedelta,
        default_duration: timedelta,
        lookup: Callable[[str, Kind, str], Object | None],
        now: Callable[[], datetime],
    ) -> None:
        self._kubelet = kubelet
        self._start_delay = start_delay.total_seconds()
        self._default = default_duration
        self._lookup = lookup
        self._now = now
        self._pods: dict[str, _Pod] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._turns = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._working: asyncio.Task[None] | None = None

    def begin(self, known: Collection[str]) -> None:
        """See ``Runtime``: nothing is left of a pretence."""

    def start(self, ref: PodRef, pod: Object, ip: str) -> None:
        """See ``Runtime``."""
        simulated = _Pod(ref, _script(pod, self._default), _container(pod))
        if _may_lack(pod):
            place = Place(
                node=pod["spec"]["nodeName"],
                ip=ip,
                home="",
                allocatable=self._kubelet.allocatable(pod["spec"]["nodeName"]),
            )
            lookup = partial(self._lookup, ref.namespace)
            simulated.needs = partial(_lack, pod, place, lookup)
        self._pods[ref.uid] = simulated
        self._schedule(simulated, self._wait(simulated))

    def stop(self, ref: PodRef, seconds: float) -> None:
        """See ``Runtime``."""
        simulated = self._pods.get(ref.uid)
        if simulated is not None and not simulated.stopping:
            simulated.stopping = True
            self._schedule(simulated, 0.0)

    def forget(self, ref: PodRef) -> None:
        """See ``Runtime``."""
        self._pods.pop(ref.uid, None)

    def _schedule(self, simulated: _Pod, seconds: float) -> None:
        self._turns += 1
        simulated.turn = self._turns
        due = asyncio.get_running_loop().time() + seconds
        heapq.heappush(self._heap, (due, self._turns, simulated.ref.uid))
        self._arm()

    def _arm(self) -> None:
        """Have the timer go off when the first entry is due."""
        if self._working is not None or not self._heap:
            return
        due = self._heap[0][0]
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
        self._timer_due = due
        self._timer = asyncio.get_running_loop().call_at(due, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._working = self._kubelet.tasks.spawn(self._work(), name="simulate")

    async def _work(self) -> None:
        try:
            while reports := self._due():
                await self._kubelet.report(reports)
        finally:
            self._working = None
            self._arm()

    def _due(self) -> list[Report]:
        reports: list[Report] = []
        now = asyncio.get_running_loop().time()
        while self._heap and self._heap[0][0] <= now and len(reports) < _BATCH:
            _, turn, uid = heapq.heappop(self._heap)
            simulated = self._pods.get(uid)
            if simulated is not None and simulated.turn == turn:
                reports.append(self._step(simulated))
        return reports

    def _step(self, simulated: _Pod) -> Report:
        """Move a pod on by one step, and plan the next."""
        before, now = simulated.container, self._now()
        script = simulated.script
        lack = None
        if isinstance(before.state, Waiting) and simulated.needs and not simulated.stopping:
            lack = simulated.needs()
        if simulated.stopping:
            after = _ended(before, _TERMINATED, now)
        elif lack is not None:
            after = replace(before, state=lack)
        elif isinstance(before.state, Waiting) and script.problem:
            ended = Terminated(128, now, now, "StartError", script.problem)
            after = replace(before, state=ended)
        elif isinstance(before.state, Waiting):
            after = replace(before, state=Running(now))
        elif isinstance(before.state, Running):
            after = _ended(before, script.exit_code, now)
        else:
            after = Container(Running(now), before.state, before.restarts + 1)
        simulated.container = after
        final = isinstance(after.state, Terminated) and (
            simulated.stopping or not pod_status.restarts(script.policy, after.state)
        )
        if final:
            self._pods.pop(simulated.ref.uid, None)
        else:
            self._schedule(simulated, _RETRY if lack else self._wait(simulated))
        states = dict.fromkeys(script.containers, after)
        if not isinstance(after.state, Waiting):
            states |= _prepared(script, after, now)
        return Report(simulated.ref, states, final=final)

    def _wait(self, simulated: _Pod) -> float:
        """Seconds until the next step."""
        container = simulated.container
        if isinstance(container.state, Waiting):
            return self._start_delay
        if isinstance(container.state, Running):
            # On from when it started, which may have been before a restart of ours.
            passed = (self._now() - container.state.started_at).total_seconds()
            return max(simulated.script.lasts - passed, 0.0)
        return min(_BACKOFF_FIRST * 2.0**container.restarts, _BACKOFF_LONGEST)


def _may_lack(pod: Object) -> bool:
    spec = pod["spec"]
    return bool(spec.get("volumes")) or any(
        container.get("env") or container.get("envFrom") for container in spec["containers"]
    )


def _lack(pod: Object, place: Place, lookup: Lookup) -> Waiting | None:
    """What keeps the pod from starting now, as a node agent tells it."""
    missing = volumes.missing(pod, place, lookup)
    if missing:
        return Waiting(pod_status.CREATING, missing)
    for container in pod["spec"]["containers"]:
        try:
            environment.build(pod, container, place, "", lookup)
        except ConfigError as error:
            return Waiting("CreateContainerConfigError", str(error))
    return None


def _prepared(script: _Script, main: Container, now: datetime) -> dict[str, Container]:
    """How the init containers and the sidecars stand beside the main ones."""
    begun = now
    if isinstance(main.state, Running | Terminated):
        begun = main.state.started_at
    done = Container(pod_status.exited(0, begun, begun))
    sidecar = main
    if isinstance(main.state, Terminated):
        sidecar = Container(pod_status.exited(0, begun, main.state.finished_at))
    return dict.fromkeys(script.inits, done) | dict.fromkeys(script.sidecars, sidecar)


def _ended(before: Container, exit_code: int, now: datetime) -> Container:
    if isinstance(before.state, Running):
        ended = pod_status.exited(exit_code, before.state.started_at, now)
        return replace(before, state=ended)
    if isinstance(before.state, Waiting):
        return replace(before, state=pod_status.lost(now))
    return before


def _script(pod: Object, default: timedelta) -> _Script:
    annotations = pod["metadata"].get("annotations", {})
    inits = pod["spec"].get("initContainers") or []
    lasts, exit_code, problem = default, 0, ""
    try:
        if names.SIMULATE_DURATION in annotations:
            lasts = duration.parse(annotations[names.SIMULATE_DURATION])
        exit_code = int(annotations.get(names.SIMULATE_EXIT_CODE, "0"))
    except (InvalidError, ValueError) as error:
        problem = f"cannot read the simulate annotations: {error}"
    if not 0 <= exit_code <= 255:
        problem = f"{names.SIMULATE_EXIT_CODE} must be from 0 to 255, is {exit_code}"
    return _Script(
        pod["spec"]["restartPolicy"],
        tuple(container["name"] for container in pod["spec"]["containers"]),
        tuple(init["name"] for init in inits if not pod_status.is_sidecar(init)),
        tuple(init["name"] for init in inits if pod_status.is_sidecar(init)),
        max(lasts.total_seconds(), 0.0),
        exit_code,
        problem,
    )


def _container(pod: Object) -> Container:
    """Where a pod's containers stand, by its status."""
    listed: list[dict[str, Any]] = pod.get("status", {}).get("containerStatuses") or [{}]
    state = listed[0].get("state", {})
    restarts = listed[0].get("restartCount", 0)
    if "running" in state:
        started = timestamps.from_text(state["running"]["startedAt"])
        return Container(Running(started), restarts=restarts)
    if "terminated" in state:
        ended = state["terminated"]
        return Container(
            pod_status.exited(
                ended["exitCode"],
                timestamps.from_text(ended["startedAt"]),
                timestamps.from_text(ended["finishedAt"]),
            ),
            restarts=restarts,
        )
    return Container(restarts=restarts)

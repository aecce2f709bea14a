"""The status that a node agent gives a pod, from what its containers do. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from hekla.domain import timestamps
from hekla.domain.phases import PodPhase
from hekla.local.kinds.registry import Object
from hekla.local.nodes import presence
from hekla.local.rules.pods import with_condition

UNKNOWN: Final = "ContainerStatusUnknown"
CREATING: Final = "ContainerCreating"
_INITIALIZING: Final = "PodInitializing"
_BACKOFF_FIRST: Final = 1.0
_BACKOFF_LONGEST: Final = 60.0
_GOOD_RUN: Final = 600.0
"""Seconds of running after which earlier ends are forgotten."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not started yet, or about to start again."""

    reason: str = CREATING
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """Started."""

    started_at: datetime


@dataclass(frozen=True, slots=True)
class Terminated:
    """Ended."""

    exit_code: int
    started_at: datetime
    finished_at: datetime
    reason: str = ""
    message: str = ""


State = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class Container:
    """One container as it stands."""

    state: State = Waiting()
    last: Terminated | None = None
    """How it ended the time before."""
    restarts: int = 0


def exited(
    exit_code: int, started_at: datetime, finished_at: datetime, message: str = ""
) -> Terminated:
    """That a container ended by itself or by a signal."""
    reason = "Completed" if exit_code == 0 else "Error"
    return Terminated(exit_code, started_at, finished_at, reason, message)


def lost(now: datetime) -> Terminated:
    """That nobody knows how a container ended, or whether it ever ran."""
    why = "The container could not be located when the pod was terminated"
    return Terminated(137, now, now, UNKNOWN, why)


def is_sidecar(init: Object) -> bool:
    """Whether an init container goes on while the pod runs."""
    return bool(init.get("restartPolicy") == "Always")


def initialized(spec: Object, containers: Mapping[str, Container]) -> bool:
    """Whether every init container has done its part."""
    for init in spec.get("initContainers") or []:
        state = containers.get(init["name"], Container()).state
        if is_sidecar(init):
            done = not isinstance(state, Waiting)
        else:
            done = isinstance(state, Terminated) and state.exit_code == 0
        if not done:
            return False
    return True


def phase(
    spec: Object, containers: Mapping[str, Container], *, final: bool = False
) -> PodPhase:
    """The phase that follows from the containers; ``final`` when none starts again."""
    policy = spec["restartPolicy"]
    inits = spec.get("initContainers") or []
    mains = [containers.get(item["name"], Container()) for item in spec["containers"]]
    ended = [item.state for item in mains if isinstance(item.state, Terminated)]
    failed = any(state.exit_code for state in ended)
    if final:
        whole = len(ended) == len(mains) and initialized(spec, containers)
        return PodPhase.SUCCEEDED if whole and not failed else PodPhase.FAILED
    if not any(item.last or not isinstance(item.state, Waiting) for item in mains):
        return PodPhase.PENDING  # the init containers may still run
    if len(ended) == len(mains):
        again = policy == "Always" or (policy == "OnFailure" and failed)
        if again or any(is_sidecar(init) for init in inits):
            return PodPhase.RUNNING
        return PodPhase.FAILED if failed else PodPhase.SUCCEEDED
    fresh = any(isinstance(item.state, Waiting) and item.last is None for item in mains)
    return PodPhase.PENDING if fresh else PodPhase.RUNNING


def back_off(runs: Sequence[Terminated]) -> float:
    """Seconds to wait before a container that ended so, the last time last, runs again."""
    in_row = 0
    for run in reversed(runs):
        in_row += 1
        if (run.finished_at - run.started_at).total_seconds() >= _GOOD_RUN:
            break
    return min(_BACKOFF_FIRST * 2.0 ** max(in_row - 1, 0), _BACKOFF_LONGEST)


def restarts(policy: str, ended: Terminated) -> bool:
    """Whether a container that ended so is started again."""
    return policy == "Always" or (policy == "OnFailure" and ended.exit_code != 0)


def build(
    pod: Object,
    containers: Mapping[str, Container],
    *,
    ip: str,
    now: datetime,
    final: bool = False,
) -> Object:
    """The pod's new status."""
    old, spec = pod.get("status", {}), pod["spec"]
    inits, mains = spec.get("initContainers") or [], spec["containers"]
    # Nothing is known of a container whose turn has not come.
    unknown = Container(Waiting(_INITIALIZING if inits else CREATING))
    known = {item["name"]: containers.get(item["name"], unknown) for item in [*inits, *mains]}
    reached = phase(spec, known, final=final)
    over = reached in {PodPhase.SUCCEEDED, PodPhase.FAILED}
    ready = not over and all(isinstance(known[item["name"]].state, Running) for item in mains)
    initial = initialized(spec, known)
    reason = "" if ready else "PodCompleted" if over and initial else "ContainersNotReady"
    not_initial = "PodCompleted" if initial else "ContainersNotInitialized"
    conditions = old.get("conditions", [])
    for type_, value, why in (
        ("PodScheduled", True, ""),
        ("Initialized", initial, "" if initial and not over else not_initial),
        ("ContainersReady", ready, reason),
        ("Ready", ready, reason),
    ):
        conditions = with_condition(conditions, type_, value=value, now=now, reason=why)
    status = {
        **old,
        "phase": reached.value,
        "hostIP": presence.HOST_IP,
        "hostIPs": [{"ip": presence.HOST_IP}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": old.get("startTime") or timestamps.to_text(now),
        "conditions": conditions,
        "containerStatuses": [
            _container_status(pod, item, known[item["name"]]) for item in mains
        ],
    }
    if inits:
        status["initContainerStatuses"] = [
            _init_status(pod, item, known[item["name"]]) for item in inits
        ]
    return status


def verdict(reason: str, message: str) -> Object:
    """What a status says of a pod that failed whatever its containers did."""
    return {"phase": PodPhase.FAILED.value, "reason": reason, "message": message}


def rejected(pod: Object, reason: str, message: str, *, now: datetime) -> Object:
    """The status of a pod that its node does not take, or no more."""
    return {
        **pod.get("status", {}),
        **verdict(reason, message),
        "startTime": pod.get("status", {}).get("startTime") or timestamps.to_text(now),
    }


def _container_status(pod: Object, container: Object, now_: Container) -> Object:
    running = isinstance(now_.state, Running)
    made = now_.last is not None or not isinstance(now_.state, Waiting)
    number = f"hekla://{pod['metadata']['uid']}/{container['name']}/{now_.restarts}"
    return {
        "name": container["name"],
        "state": _state(now_.state),
        "lastState": _state(now_.last) if now_.last else {},
        "ready": running,
        "started": running,
        "restartCount": now_.restarts,
        "image": container.get("image", ""),
        "imageID": "",
        "containerID": number if made else "",
    }


def _init_status(pod: Object, container: Object, now_: Container) -> Object:
    status = _container_status(pod, container, now_)
    if not is_sidecar(container):
        done = isinstance(now_.state, Terminated) and now_.state.exit_code == 0
        status |= {"ready": done, "started": False}
    return status


def _state(state: State) -> dict[str, Any]:
    if isinstance(state, Waiting):
        waiting = {"reason": state.reason}
        return {"waiting": waiting | ({"message": state.message} if state.message else {})}
    if isinstance(state, Running):
        return {"running": {"startedAt": timestamps.to_text(state.started_at)}}
    terminated: dict[str, Any] = {
        "exitCode": state.exit_code,
        "reason": state.reason,
        "startedAt": timestamps.to_text(state.started_at),
        "finishedAt": timestamps.to_text(state.finished_at),
    }
    if state.message:
        terminated["message"] = state.message
    return {"terminated": terminated}

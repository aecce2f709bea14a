"""The status that a node agent gives a pod, from what its containers do. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from hekla.domain import timestamps
from hekla.domain.phases import PodPhase
from hekla.local import nodes
from hekla.local.pods import with_condition
from hekla.local.registry import Object

UNKNOWN: Final = "ContainerStatusUnknown"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not started yet, or about to start again."""

    reason: str = "ContainerCreating"
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


def phase(policy: str, containers: Sequence[Container], *, final: bool) -> PodPhase:
    """The phase that follows from the containers; ``final`` when none starts again."""
    ended = [item.state for item in containers if isinstance(item.state, Terminated)]
    if len(ended) == len(containers):
        failed = any(state.exit_code for state in ended)
        again = policy == "Always" or (policy == "OnFailure" and failed)
        if again and not final:
            return PodPhase.RUNNING
        return PodPhase.FAILED if failed else PodPhase.SUCCEEDED
    started = any(
        not isinstance(item.state, Waiting) or item.last is not None for item in containers
    )
    waits = all(item.last is None for item in containers if isinstance(item.state, Waiting))
    has_waiting = any(isinstance(item.state, Waiting) for item in containers)
    return PodPhase.PENDING if (has_waiting and waits) or not started else PodPhase.RUNNING


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
    old = pod.get("status", {})
    listed = pod["spec"]["containers"]
    states = [containers.get(item["name"], Container()) for item in listed]
    reached = phase(pod["spec"]["restartPolicy"], states, final=final)
    ready = all(isinstance(item.state, Running) for item in states)
    over = reached in {PodPhase.SUCCEEDED, PodPhase.FAILED}
    reason = "" if ready else "PodCompleted" if over else "ContainersNotReady"
    conditions = old.get("conditions", [])
    for type_, value, why in (
        ("PodScheduled", True, ""),
        ("Initialized", True, "PodCompleted" if over else ""),
        ("ContainersReady", ready, reason),
        ("Ready", ready, reason),
    ):
        conditions = with_condition(conditions, type_, value=value, now=now, reason=why)
    return {
        **old,
        "phase": reached.value,
        "hostIP": nodes.HOST_IP,
        "hostIPs": [{"ip": nodes.HOST_IP}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": old.get("startTime") or timestamps.to_text(now),
        "conditions": conditions,
        "containerStatuses": [
            _container_status(pod, item, state)
            for item, state in zip(listed, states, strict=True)
        ],
    }


def rejected(pod: Object, reason: str, message: str, *, now: datetime) -> Object:
    """The status of a pod that its node does not take, or no more."""
    return {
        **pod.get("status", {}),
        "phase": PodPhase.FAILED.value,
        "reason": reason,
        "message": message,
        "startTime": pod.get("status", {}).get("startTime") or timestamps.to_text(now),
    }


def _container_status(pod: Object, container: Object, now_: Container) -> Object:
    running = isinstance(now_.state, Running)
    return {
        "name": container["name"],
        "state": _state(now_.state),
        "lastState": _state(now_.last) if now_.last else {},
        "ready": running,
        "started": running,
        "restartCount": now_.restarts,
        "image": container.get("image", ""),
        "imageID": "",
        "containerID": f"hekla://{pod['metadata']['uid']}/{container['name']}/{now_.restarts}",
    }


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

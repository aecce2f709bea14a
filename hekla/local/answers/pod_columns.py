"""What ``kubectl get pods`` shows of a pod: above all one word for how it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from hekla.local.kinds.registry import Object

_NONE: Final = "<none>"
_OVER: Final = frozenset({"Succeeded", "Failed"})


class _Containers(NamedTuple):
    """What the statuses of a pod's containers come to."""

    reason: str
    ready: int
    restarts: int
    last_end: str
    """When a container last ended to be started again; empty if none did."""


def row(pod: Object, age: Callable[[str], str]) -> list[Any]:
    """The cells; ``age`` tells how long ago a time was."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    phase = status.get("phase", "")
    reason = status.get("reason") or phase
    if _condition(status, "PodScheduled").get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    found = _initial(spec, status, reason)
    initializing = found.reason != reason
    if not initializing or _condition(status, "Initialized").get("status") == "True":
        sidecars = _Containers(reason, *_sidecars(spec, status))
        found = _main(status, sidecars)
    if "deletionTimestamp" in metadata and phase not in _OVER:
        unknown = status.get("reason") == "NodeLost"
        found = found._replace(reason="Unknown" if unknown else "Terminating")
    restarts = str(found.restarts)
    if found.restarts and found.last_end:
        restarts = f"{restarts} ({age(found.last_end)} ago)"
    total = len(spec.get("containers", ())) + len(_sidecar_names(spec))
    return [
        metadata["name"],
        f"{found.ready}/{total}",
        found.reason,
        restarts,
        age(metadata.get("creationTimestamp", "")),
        status.get("podIP") or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        _gates(spec, status),
    ]


def _condition(status: Object, kind: str) -> Object:
    for each in status.get("conditions", ()):
        if each.get("type") == kind:
            found: Object = each
            return found
    return {}


def _gates(spec: Object, status: Object) -> str:
    gates = spec.get("readinessGates") or []
    if not gates:
        return _NONE
    passed = [
        gate
        for gate in gates
        if _condition(status, gate.get("conditionType", "")).get("status") == "True"
    ]
    return f"{len(passed)}/{len(gates)}"


def _sidecar_names(spec: Object) -> set[str]:
    return {
        each["name"]
        for each in spec.get("initContainers") or ()
        if each.get("restartPolicy") == "Always"
    }


def _sidecars(spec: Object, status: Object) -> tuple[int, int, str]:
    """Of the containers that start before the others and stay: ready, restarts, last end."""
    names = _sidecar_names(spec)
    chosen = [
        each for each in status.get("initContainerStatuses") or () if each["name"] in names
    ]
    ready = sum(bool(each.get("started") and each.get("ready")) for each in chosen)
    return ready, *_restarts(chosen)


def _restarts(statuses: Sequence[Object]) -> tuple[int, str]:
    """How often containers were started again, and when the last of them had ended."""
    ends = [
        each.get("lastState", {}).get("terminated", {}).get("finishedAt", "")
        for each in statuses
    ]
    return sum(each.get("restartCount", 0) for each in statuses), max(ends, default="")


def _initial(spec: Object, status: Object, reason: str) -> _Containers:
    """How far the init containers are; the reason stays as it is if they are through."""
    names = _sidecar_names(spec)
    statuses = status.get("initContainerStatuses") or ()
    ready, _, _ = _sidecars(spec, status)
    restarts, last_end = _restarts(statuses)
    for index, each in enumerate(statuses):
        state = each.get("state", {})
        ended, waiting = state.get("terminated"), state.get("waiting", {}).get("reason")
        if ended and ended.get("exitCode") == 0:
            continue
        if each["name"] in names and each.get("started"):
            continue
        if ended:
            reason = f"Init:{_end(ended)}"
        elif waiting and waiting != "PodInitializing":
            reason = f"Init:{waiting}"
        else:
            reason = f"Init:{index}/{len(spec.get('initContainers') or ())}"
        break
    return _Containers(reason, ready, restarts, last_end)


def _main(status: Object, sidecars: _Containers) -> _Containers:
    """What the containers say; the first that is not simply running has the word."""
    statuses = status.get("containerStatuses") or ()
    reason, ready, running = sidecars.reason, sidecars.ready, False
    for each in reversed(statuses):
        state = each.get("state", {})
        if state.get("waiting", {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif "terminated" in state:
            reason = _end(state["terminated"])
        elif each.get("ready") and "running" in state:
            running = True
            ready += 1
    if reason == "Completed" and running:
        is_ready = _condition(status, "Ready").get("status") == "True"
        reason = "Running" if is_ready else "NotReady"
    restarts, last_end = _restarts(statuses)
    return _Containers(
        reason, ready, sidecars.restarts + restarts, max(sidecars.last_end, last_end)
    )


def _end(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"

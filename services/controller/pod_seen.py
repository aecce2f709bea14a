"""Reads pods as Kubernetes shows them. Applied in the I/O process, to every pod of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from hekla.domain import names, timestamps
from hekla.domain.attempt import PodSeen
from hekla.domain.errors import InvalidError

REJECTIONS: Final = (
    "OutOf",
    "UnexpectedAdmissionError",
    "TopologyAffinityError",
    "NodeAffinity",
)
"""How the reason of a pod begins that the kubelet refused before any container started."""
LARGEST_INT32: Final = 2**31 - 1
CLOCKS: Final = range(1970, 9000)
"""Years that clocks of nodes may show; reckoning with others leads out of the calendar."""
KUBELET_PRESSURE: Final = "TerminationByKubelet"
"""Reason of DisruptionTarget when the node ran short: that counts as the pod's failure."""


def project(pod: Mapping[str, Any]) -> PodSeen | None:
    """What the controller wants to know of a pod; None if it is none of an attempt."""
    meta = pod["metadata"]
    try:
        attempt = UUID((meta.get("annotations") or {})[names.ATTEMPT_UID])
        job = UUID((meta.get("labels") or {})[names.JOB_UID])
    except (KeyError, ValueError):
        return None
    status = pod.get("status") or {}
    spec = pod.get("spec") or {}
    phase = _text(status.get("phase")) or "Pending"
    reason = _text(status.get("reason"))
    conditions = {one.get("type"): one for one in status.get("conditions") or []}
    statuses = list(_container_statuses(status))
    terminating = meta.get("deletionTimestamp") is not None
    node = _text(spec.get("nodeName"))
    return PodSeen(
        namespace=meta["namespace"],
        name=meta["name"],
        pod_uid=meta["uid"],
        job_uid=job,
        attempt_uid=attempt,
        resource_version=int(meta["resourceVersion"]),
        phase=phase,
        ready=_is_true(conditions.get("Ready")),
        terminating=terminating,
        disrupted=_disrupted(conditions.get("DisruptionTarget")),
        rejected=phase == "Failed" and reason.startswith(REJECTIONS) and not statuses,
        restarts=_number(sum(_number(one.get("restartCount")) for one in statuses)),
        exit_codes=_exit_codes(statuses),
        reason=reason or _waiting_reason(statuses),
        node=node,
        started_at=_instant(status.get("startTime")),
        finished_at=_finished(statuses),
        finalizers=tuple(meta.get("finalizers") or ()),
        cut=terminating and (not node or meta.get("deletionGracePeriodSeconds") == 0),
        gone=False,
    )


def _container_statuses(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from status.get("initContainerStatuses") or []
    yield from status.get("containerStatuses") or []


def _terminated(one: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (one.get("state") or {}).get("terminated")
    return found


def _exit_codes(statuses: list[Mapping[str, Any]]) -> dict[str, int]:
    codes = {}
    for one in statuses:
        ended = _terminated(one)
        if ended is not None:
            codes[_text(one.get("name"))] = _number(ended.get("exitCode"))
    return codes


def _finished(statuses: list[Mapping[str, Any]]) -> datetime | None:
    """When the last container ended."""
    ends = [_instant((_terminated(one) or {}).get("finishedAt")) for one in statuses]
    return max((end for end in ends if end is not None), default=None)


def _waiting_reason(statuses: list[Mapping[str, Any]]) -> str:
    for one in statuses:
        waiting = (one.get("state") or {}).get("waiting")
        if waiting and waiting.get("reason"):
            return _text(waiting["reason"])
    return ""


def _is_true(condition: Mapping[str, Any] | None) -> bool:
    return condition is not None and condition.get("status") == "True"


def _disrupted(condition: Mapping[str, Any] | None) -> bool:
    return (
        condition is not None
        and condition.get("status") == "True"
        and condition.get("reason") != KUBELET_PRESSURE
    )


def _instant(text: str | None) -> datetime | None:
    try:
        found = timestamps.from_text(text) if text else None
    except InvalidError:
        return None
    return found if found is not None and found.year in CLOCKS else None


def _text(value: object) -> str:
    """What can be stored of a text."""
    return str(value or "").replace("\0", "")


def _number(value: Any) -> int:
    """The nearest number that can be stored."""
    return max(-LARGEST_INT32 - 1, min(int(value or 0), LARGEST_INT32))

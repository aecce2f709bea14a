"""What is told of groups when a session ends: phase, conditions, counts, and why it waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from hekla.domain.phases import LET_IN, PodGroupPhase
from services.scheduler.core.cluster import Cluster
from services.scheduler.core.groups import GroupState, GroupStatus, Refusal
from services.scheduler.core.objects import Condition, Decisions, GroupReport, PodReport
from services.scheduler.core.status import Status
from services.scheduler.framework import Framework

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULED: Final = "Scheduled"
NOT_ENOUGH_RESOURCES: Final = "NotEnoughResources"

REWORD_AFTER: Final = timedelta(seconds=10)
"""A report in which only the wording changed waits so long after the last one."""

_SHOWN: Final = {
    Status.PENDING: "Pending",
    Status.GATED: "Gated",
    Status.BINDING: "Binding",
    Status.BOUND: "Bound",
    Status.RUNNING: "Running",
    Status.RELEASING: "Releasing",
    Status.SUCCEEDED: "Succeeded",
    Status.FAILED: "Failed",
    Status.LEAVING: "Succeeded",
    Status.DROPPED: "Releasing",
    Status.UNKNOWN: "Unknown",
}
_SCHEDULED: Final = (Status.BOUND, Status.RUNNING, Status.RELEASING)
_ENDED: Final = (Status.SUCCEEDED, Status.FAILED, Status.LEAVING)


class Reporter:
    """Works out the status of groups that changed, and tells what differs."""

    def __init__(self, cluster: Cluster, framework: Framework, now: datetime, uid: str) -> None:
        self._cluster = cluster
        self._framework = framework
        self._now = now
        self._uid = uid
        self.moved = False
        """Some group's members alone brought it into another phase."""

    def report(
        self,
        decisions: Decisions,
        guarded: Callable[[GroupState, Callable[[], bool | None]], bool],
    ) -> None:
        """Add to ``decisions`` what is new of the groups that changed."""
        cluster = self._cluster
        if cluster.reword_at is not None and self._now >= cluster.reword_at:
            cluster.changed |= cluster.reword
            cluster.reword_at = None
            cluster.reword = {}
        for group in cluster.changed.values():
            guarded(group, partial(self._report, group, decisions))
        cluster.changed = {}

    def _report(self, group: GroupState, decisions: Decisions) -> None:
        cluster = self._cluster
        self._report_pods(group, decisions)
        status = self._status(group)
        if status == group.status:
            return
        if _only_words_differ(status, group.status) and not self._due(group):
            cluster.reword[group.uid] = group
            cluster.reword_at = cluster.reword_at or self._now + REWORD_AFTER
            return
        self.moved = self.moved or status.phase is not group.phase
        report = GroupReport(
            group.uid,
            *status,
            message=status_message(status),
            may_rest=may_rest(group.status, status),
        )
        group.status, group.phase, group.decided = status, status.phase, True
        group.reported_at = self._now
        decisions.reports.append(report)

    def _due(self, group: GroupState) -> bool:
        return group.reported_at is None or self._now - group.reported_at >= REWORD_AFTER

    def _status(self, group: GroupState) -> GroupStatus:
        ready = self._framework.job_ready(group)
        condition = self._condition(group, ready=ready)
        return GroupStatus(
            phase=next_phase(group, ready=ready, unschedulable=_says_unschedulable(condition)),
            conditions=self._with(group.status.conditions, condition),
            running=group.counts[Status.RUNNING],
            succeeded=group.counts[Status.SUCCEEDED] + group.counts[Status.LEAVING],
            failed=group.counts[Status.FAILED],
        )

    def _condition(self, group: GroupState, *, ready: bool) -> Condition | None:
        """The condition that holds now; None where nothing is to be said."""
        if not group.members and group.refusal is None:
            return None
        if ready and group.members:
            return Condition(SCHEDULED, "True", "tasks in gang are ready to be scheduled")
        if self._is_winding_down(group):
            return None
        refusal = group.refusal
        reason = refusal.reason if refusal is not None else NOT_ENOUGH_RESOURCES
        return Condition(UNSCHEDULABLE, "True", reason, gang_message(group, refusal))

    def _is_winding_down(self, group: GroupState) -> bool:
        """Whether the gang is short only of members that are ending."""
        scheduled = sum(group.counts[status] for status in (*_SCHEDULED, *_ENDED))
        return (
            group.counts[Status.RELEASING] > 0
            and group.counts[Status.PENDING] == 0
            and scheduled >= group.group.min_member
        )

    def _with(
        self, conditions: tuple[Condition, ...], new: Condition | None
    ) -> tuple[Condition, ...]:
        """``conditions`` with ``new`` for the one of its type; the newest comes last."""
        if new is None or (conditions and _bare(conditions[-1]) == _bare(new)):
            return conditions
        stamped = replace(new, transition_id=self._uid, last_transition_time=self._now)
        return (*(it for it in conditions if it.type != new.type), stamped)

    def _report_pods(self, group: GroupState, decisions: Decisions) -> None:
        refusal = group.refusal
        if refusal is None or not group.unreported:
            return
        group.unreported = False
        for states in group.pending.values():
            for state in states.values():
                if state.reported != UNSCHEDULABLE:
                    state.reported = UNSCHEDULABLE
                    report = PodReport(state.pod.uid, UNSCHEDULABLE, refusal.message)
                    decisions.pod_reports.append(report)


def next_phase(group: GroupState, *, ready: bool, unschedulable: bool) -> PodGroupPhase:
    """The phase that a group's members give it.

    Members that are assumed keep a phase, but never bring a new one.
    """
    counts = group.counts
    ended = sum(counts[status] for status in _ENDED)
    scheduled = ended + sum(counts[status] for status in _SCHEDULED)
    if counts[Status.RUNNING] and unschedulable:
        return PodGroupPhase.UNKNOWN
    if scheduled and scheduled >= group.group.min_member:
        over = scheduled == ended and not counts[Status.BINDING]
        return PodGroupPhase.COMPLETED if over else PodGroupPhase.RUNNING
    if group.phase is PodGroupPhase.INQUEUE or (ready and group.members):
        return group.phase
    return PodGroupPhase.PENDING


def gang_message(group: GroupState, refusal: Refusal | None) -> str:
    """Why the gang is not complete, in Volcano's words and ours."""
    total = max(len(group.members), group.group.min_member)
    schedulable = refusal.schedulable if refusal is not None else 0
    short = max(0, group.group.min_member - group.ready_members - schedulable)
    counts = _counted(group)
    cause = f"pod group is not ready, {', '.join(counts)}"
    if refusal is not None:
        culprit = f" {refusal.pod}" if refusal.pod else ""
        cause = f"{cause}. Origin reason is{culprit}: {refusal.message}"
    return f"{short}/{total} tasks in gang unschedulable: {cause}"


def status_message(status: GroupStatus) -> str:
    """Why a group with this status waits; empty when it does not."""
    newest = status.conditions[-1] if status.conditions else None
    return newest.message if newest is not None and newest.type == UNSCHEDULABLE else ""


def may_rest(before: GroupStatus, after: GroupStatus) -> bool:
    """Whether nobody acts on what is new: counts, and how far a group that was let in got.

    The controller makes pods of who was let in, and tells users what speaks against a group.
    """
    known = before.phase in LET_IN and after.phase in LET_IN
    return known and status_message(before) == status_message(after)


def _counted(group: GroupState) -> list[str]:
    counts: dict[str, int] = {}
    for status, text in _SHOWN.items():
        counts[text] = counts.get(text, 0) + group.counts[status]
    texts = [f"{count} {text}" for text, count in counts.items() if count]
    return sorted([*texts, f"{group.group.min_member} minAvailable"])


def _says_unschedulable(condition: Condition | None) -> bool:
    return condition is not None and condition.type == UNSCHEDULABLE


def _bare(condition: Condition) -> tuple[str, str, str, str]:
    return (condition.type, condition.status, condition.reason, condition.message)


def _only_words_differ(one: GroupStatus, other: GroupStatus) -> bool:
    def wordless(status: GroupStatus) -> tuple[object, ...]:
        kinds = [(it.type, it.status, it.reason) for it in status.conditions]
        return (*status._replace(conditions=()), tuple(kinds))

    return wordless(one) == wordless(other)

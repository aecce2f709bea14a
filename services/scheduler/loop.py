"""The scheduling thread: takes events in, runs sessions while it leads, hands decisions on.

It alone touches the cache and alone decides that a term begins or ends. It never waits for
Postgres, Kubernetes or the controller.
"""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

from hekla.kube.fence import Fence, Progress
from hekla.store.binds import BindRecord
from hekla.telemetry import metrics
from services.scheduler.binder import Binder
from services.scheduler.cache import Cache
from services.scheduler.campaign import LEASE, Campaign
from services.scheduler.config import SchedulerConfig
from services.scheduler.core.objects import Bind, Decisions
from services.scheduler.core.reports import UNSCHEDULABLE
from services.scheduler.core.session import Session
from services.scheduler.events import (
    GONE,
    Batch,
    Bound,
    Deposed,
    Elected,
    Event,
    Full,
    Kind,
    Outdated,
    Refused,
)
from services.scheduler.inbox import Inbox
from services.scheduler.policies import Policies
from services.scheduler.telling import Conditions, Reports

IDLE: Final = 0.5
"""Seconds between signs of life when nothing happens."""
WINDOWS: Final = 30
"""Sessions may take one part in so many of the processor's time, or else news gathers."""
CREDIT: Final = 1.0
"""Seconds of that time for which sessions may be ahead: a few follow each other at once."""
POLL: Final = 0.05
"""Seconds between looks at what holds a leader back from deciding."""
FIRST_BACKOFF: Final = timedelta(milliseconds=200)
LONGEST_BACKOFF: Final = timedelta(seconds=30)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Term:
    """A time of leading."""

    epoch: int
    begins_at: float
    """When it may decide, on the monotonic clock."""
    fence_by: float
    """When the fence must have been up at the latest."""
    confirmed: bool = False
    """Whether the fence was seen up."""


@dataclass(slots=True)
class Figures:
    """How it goes, for whoever asks; written by the scheduling thread only."""

    leading: bool = False
    epoch: int = 0
    sessions: int = 0
    last_session_seconds: float = 0.0


class Scheduler:
    """One scheduler, leading or standing by."""

    def __init__(
        self,
        settings: SchedulerConfig,
        *,
        cache: Cache,
        inbox: Inbox,
        policies: Policies,
        fence: Fence,
        progress: Progress,
        campaign: Campaign,
        binder: Binder,
        reports: Reports,
        conditions: Conditions,
        stale: Callable[[], str | None],
    ) -> None:
        """See the class; ``stale`` tells why nothing may be decided now, or None.

        What the cache holds may be old, or another scheduler is at work.
        """
        self._settings = settings
        self._cache = cache
        self._inbox = inbox
        self._policies = policies
        self._fence = fence
        self._progress = progress
        self._campaign = campaign
        self._binder = binder
        self._reports = reports
        self._conditions = conditions
        self._stale = stale
        self._retiring = False
        self._due = 0.0
        self._changed = True
        self._paid_at = 0.0
        """When what sessions took of the processor is made up for."""
        self._failures: dict[str, int] = {}
        """How often binds of a pod were refused, by pod uid."""
        self._given_up: list[tuple[float, str]] = []
        """When to forget where refused pods were assumed: till then their room is kept."""
        self._reasons: dict[str, str] = {}
        """The reason that a group's pods were last told, by group uid."""
        self.term: Term | None = None
        self.figures = Figures()
        metrics.lease_held.labels(LEASE).set(0)

    def retire(self) -> None:
        """Decide nothing more; what is decided is still carried out. For another thread."""
        self._retiring = True

    def resign(self) -> None:
        """Lead no more, for good. Only once the thread that steps has ended."""
        self._step_down("stopping")
        self._campaign.retire()

    def step(self) -> bool:
        """Take in what happened and, if it is time and ours to do, decide. Never idle."""
        self._progress.move()
        self._wait()
        try:
            for event in self._inbox.drain():
                self._take(event)
            self._forget_refused()
            self._changed |= self._policies.look()
            self._look_at_term()
            if self._may_decide():
                self._decide()
        except Exception:
            # Half a session may be in the arrays: begin anew from what events told.
            self._cache.rebuild()
            self._step_down("a fault of ours")
            raise
        return True

    def _wait(self) -> None:
        """Wait for events or the next session, then a little for more of them."""
        first = self._inbox.wait(max(0.0, self._wake_at() - time.monotonic()))
        if first is not None:
            least = first + self._settings.coalesce_least.total_seconds()
            time.sleep(max(0.0, max(least, self._paid_at - CREDIT) - time.monotonic()))

    def _wake_at(self) -> float:
        """When there is something to do, or to look at again, without any event."""
        now = time.monotonic()
        wake_at = now + IDLE
        if self._given_up:
            wake_at = min(wake_at, self._given_up[0][0])
        if self.term is None or self._retiring:
            return wake_at
        if not self.term.confirmed or self._stale() is not None:
            return min(wake_at, now + POLL)
        due = now if self._changed else self._due
        return min(wake_at, max(due, self.term.begins_at))

    # Events.

    def _take(self, event: Event) -> None:
        match event:
            case Batch() | Full():
                self._changed = True
                self._cache.apply(event)
                self._reports.withdraw(_groups_gone(event))
            case Elected():
                self._begin(event)
            case Deposed(epoch, reason) if self._leads(epoch):
                self._step_down(reason)
            case Bound(epoch, uid) if self._leads(epoch):
                self._failures.pop(uid, None)
                self._observe_bound(uid)
            case Refused(epoch, uid, gone) if self._leads(epoch):
                self._give_up_later(uid, gone=gone)
            case Outdated(uid, reason, message):
                self._tell_pod(uid, reason, message)

    def _leads(self, epoch: int) -> bool:
        return self.term is not None and self.term.epoch == epoch

    def _give_up_later(self, uid: str, *, gone: bool) -> None:
        pause = timedelta()
        if not gone:
            failures = self._failures.get(uid, 0)
            self._failures[uid] = failures + 1
            doublings = min(failures, 10)
            pause = min(FIRST_BACKOFF * (1 << doublings), LONGEST_BACKOFF)
        heapq.heappush(self._given_up, (time.monotonic() + pause.total_seconds(), uid))

    def _forget_refused(self) -> None:
        now = time.monotonic()
        while self._given_up and self._given_up[0][0] <= now:
            _, uid = heapq.heappop(self._given_up)
            self._cache.give_up(uid)
            if uid not in self._cache.cluster.pods:
                self._failures.pop(uid, None)
            self._changed = True

    def _observe_bound(self, uid: str) -> None:
        state = self._cache.cluster.pods.get(uid)
        if state is not None:
            waited = datetime.now(UTC) - state.pod.created
            metrics.task_latency.labels("Bound").observe(waited.total_seconds() * 1e3)

    # Terms.

    def _begin(self, elected: Elected) -> None:
        now = time.monotonic()
        begins_at = now + elected.pause.total_seconds()
        fence_by = now + self._settings.lease_ttl.total_seconds()
        self.term = Term(elected.epoch, begins_at, fence_by)
        self._binder.begin(elected.epoch)
        self._reports.begin(elected.epoch)
        told = {record.pod_uid for record in elected.unsettled if self._cache.expect(record)}
        again = [record for record in elected.unsettled if record.pod_uid in told]
        again += [record for record in elected.recent if self._cache.expect(record)]
        here, elsewhere = self._settled_by_events(
            record for record in elected.unsettled if record.pod_uid not in told
        )
        # Carried out even so: whatever an earlier leader's requests do late is done by then.
        self._binder.resume(again)
        self._binder.settle(bound=here, refused=elsewhere)
        self.figures.leading, self.figures.epoch = True, elected.epoch
        self._due = begins_at
        self._changed = True
        metrics.lease_held.labels(LEASE).set(1)
        log.info(
            "leading",
            extra={
                "epoch": elected.epoch,
                "taken_over": len(again),
                "settled": len(here) + len(elsewhere),
            },
        )

    def _settled_by_events(self, records: Iterable[BindRecord]) -> tuple[list[str], list[str]]:
        here: list[str] = []
        elsewhere: list[str] = []
        for record in records:
            state = self._cache.cluster.pods.get(record.pod_uid)
            there = state is not None and state.pod.node == record.node
            (here if there else elsewhere).append(record.pod_uid)
        return here, elsewhere

    def _look_at_term(self) -> None:
        term = self.term
        if term is None:
            return
        if self._fence.left() > 0:
            term.confirmed = True
        elif term.confirmed or time.monotonic() > term.fence_by:
            self._step_down("the lease ran out")

    def _step_down(self, reason: str) -> None:
        term, self.term = self.term, None
        if term is None:
            return
        self._fence.drop()
        self._binder.end()
        self._reports.end()
        self._conditions.end()
        self._given_up.clear()
        self._failures.clear()
        self._reasons.clear()
        self._cache.follow()
        self._campaign.step_down(term.epoch)
        self.figures.leading = False
        metrics.lease_held.labels(LEASE).set(0)
        log.warning("leading no more", extra={"epoch": term.epoch, "reason": reason})

    # Decisions.

    def _may_decide(self) -> bool:
        now = time.monotonic()
        term = self.term
        return (
            term is not None
            and term.confirmed
            and not self._retiring
            and now >= term.begins_at
            and (self._changed or now >= self._due)
            and self._stale() is None
        )

    def _decide(self) -> None:
        self._changed = False
        began, worked = time.perf_counter(), time.thread_time()
        decisions = Session(
            self._cache.cluster,
            self._policies.framework,
            datetime.now(UTC),
            uid=str(uuid4()),
        ).run()
        self._progress.move()
        self._hand_on(decisions)
        seconds = time.perf_counter() - began
        now = time.monotonic()
        most = self._settings.coalesce_most.total_seconds()
        cost = WINDOWS * (time.thread_time() - worked)
        self._paid_at = min(max(self._paid_at, now) + cost, now + CREDIT + most)
        period = self._settings.schedule_period
        pause = period if decisions.again_in is None else min(decisions.again_in, period)
        self._due = now + pause.total_seconds()
        self.figures.sessions += 1
        self.figures.last_session_seconds = seconds
        metrics.scheduling_latency.observe(seconds * 1e3)
        metrics.unscheduled_jobs.set(len(decisions.waiting))
        if decisions.binds or decisions.reports or decisions.pod_reports:
            log.info(
                "session",
                extra={
                    "epoch": self.figures.epoch,
                    "seconds": round(seconds, 4),
                    "binds": len(decisions.binds),
                    "reports": len(decisions.reports),
                    "waiting": len(decisions.waiting),
                },
            )

    def _hand_on(self, decisions: Decisions) -> None:
        for failure in decisions.failures:
            log.error(
                "a group was left out", exc_info=failure.error, extra={"group": failure.uid}
            )
        self._reports.add(decisions.reports)
        if decisions.binds:
            self._conditions.withdraw(bind.pod_uid for bind in decisions.binds)
            self._binder.submit([self._record(bind) for bind in decisions.binds])
        for report in decisions.pod_reports:
            self._tell_pod(report.pod_uid, report.reason, report.message)
        for group in decisions.reports:
            self._tell_pods_again(group.uid)

    def _record(self, bind: Bind) -> BindRecord:
        state = self._cache.cluster.pods[bind.pod_uid]
        pod = state.pod
        return BindRecord(
            pod_uid=pod.uid,
            namespace=pod.namespace,
            pod_name=pod.name,
            group_uid=state.group.uid if state.group is not None else "",
            node=bind.node,
            request=dict(pod.spec.request),
        )

    def _tell_pods_again(self, group_uid: str) -> None:
        """Tell a group's pods when they wait for another reason than the one they know."""
        groups = self._cache.cluster.groups
        if len(self._reasons) > len(groups):
            self._reasons = {uid: it for uid, it in self._reasons.items() if uid in groups}
        group = groups.get(group_uid)
        refusal = None if group is None else group.refusal
        if group is None or refusal is None:
            self._reasons.pop(group_uid, None)
            return
        if self._reasons.get(group_uid) == refusal.reason:
            return
        self._reasons[group_uid] = refusal.reason
        for states in group.pending.values():
            for uid in states:
                self._tell_pod(uid, UNSCHEDULABLE, refusal.message)

    def _tell_pod(self, uid: str, reason: str, message: str) -> None:
        seen = self._cache.unplaced.get(uid)
        if (
            self.term is not None
            and seen is not None
            and uid not in self._cache.cluster.assumed
        ):
            self._conditions.say(seen, reason, message, datetime.now(UTC))


def _groups_gone(event: Batch | Full) -> Iterable[str]:
    if event.kind is not Kind.GROUP or isinstance(event, Full):
        return ()
    return [found.uid for type_, found in event.changes if type_ == GONE]

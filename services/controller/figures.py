"""Gauges that are measured now and then, by one statement each."""

from __future__ import annotations

from collections.abc import Mapping

from hekla.store import feed, jobs, pod_groups, work
from hekla.store.database import Database
from hekla.store.hub import Hub
from hekla.telemetry import metrics


class Figures:
    """Measures the work queue, the feed and the queues."""

    def __init__(self, database: Database, hub: Hub) -> None:
        self._database = database
        metrics.feed_lag_seconds.set_function(lambda: hub.seconds_behind)

    def measure_once(self) -> bool:
        """Set the gauges; nothing more to do for a while."""
        with self._database.transaction() as session:
            due, oldest = work.depth(session, [jobs.KIND])
            age = feed.oldest_transaction_seconds(session)
            groups = pod_groups.counts_by_queue(session)
        metrics.work_due.labels(jobs.KIND).set(due)
        metrics.work_oldest_due_seconds.labels(jobs.KIND).set(oldest)
        metrics.oldest_xmin_age_seconds.set(age)
        self._show(groups)
        return False

    def _show(self, groups: Mapping[str, Mapping[str, int]]) -> None:
        for phase, gauge in metrics.queue_pod_groups.items():
            gauge.clear()  # queues that are gone must not go on being shown
            for queue, counts in groups.items():
                gauge.labels(queue).set(counts.get(phase, 0))

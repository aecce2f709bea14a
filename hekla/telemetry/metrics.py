"""Every metric of the project, in one table.

Names that Volcano has are Volcano's, with its labels and buckets; the rest begin with
``hekla_``. What Volcano calls a counter without ending its name in ``_total`` is a gauge
here that only grows, since the client library would rename it; ``rate()`` reads both.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram


def exponential(first: float, last: float, count: int) -> tuple[float, ...]:
    """``count`` bucket bounds from ``first`` to ``last``, each the same factor wider."""
    factor = (last / first) ** (1 / (count - 1))
    return tuple(round(first * factor**step, 6) for step in range(count))


_SECONDS = exponential(0.001, 30, 16)

# ---- calls -----------------------------------------------------------------------------

rpc_handled = Counter("hekla_rpc_handled", "Calls that ended.", ["method", "code"])
rpc_seconds = Histogram(
    "hekla_rpc_seconds",
    "How long calls took; streams are left out.",
    ["method"],
    buckets=_SECONDS,
)
rpc_streams = Gauge("hekla_rpc_streams", "Streams that are open.", ["method"])
rpc_streams_stalled = Counter(
    "hekla_rpc_streams_stalled", "Streams closed because their client did not read.", ["method"]
)
rpc_limited = Counter(
    "hekla_rpc_limited", "Calls and streams refused since their caller has too many.", ["what"]
)

# ---- Postgres --------------------------------------------------------------------------

feed_lag_seconds = Gauge(
    "hekla_feed_lag_seconds", "How long ago this process last read the change feed."
)
feed_dropped = Counter("hekla_feed_dropped", "Watchers closed because they fell behind.")
oldest_xmin_age_seconds = Gauge(
    "hekla_database_oldest_xmin_age_seconds",
    "Age of the oldest transaction that holds back vacuum, in any database of the server.",
)
work_due = Gauge("hekla_work_due", "Objects that are due for a look.", ["kind"])
work_oldest_due_seconds = Gauge(
    "hekla_work_oldest_due_seconds", "How long the object due longest has waited.", ["kind"]
)
lease_held = Gauge("hekla_lease_held", "Whether this process holds the lease.", ["name"])

# ---- webhook ---------------------------------------------------------------------------

reviews = Counter(
    "hekla_reviews", "Reviews over HTTPS that were answered.", ["path", "outcome"]
)
review_seconds = Histogram(
    "hekla_review_seconds", "How long they took.", ["path"], buckets=_SECONDS
)
certificate_ends = Gauge(
    "hekla_certificate_ends_timestamp_seconds", "When the certificate that is served ends."
)
webhooks_registered = Gauge(
    "hekla_webhooks_registered", "Whether API servers were told of us when last looked."
)

# ---- controller ------------------------------------------------------------------------

passes = Counter("hekla_passes", "Looks at an object.", ["kind", "outcome"])
pass_seconds = Histogram(
    "hekla_pass_seconds", "How long a look took.", ["kind"], buckets=_SECONDS
)
policy_actions = Counter(
    "hekla_policy_actions", "Actions that life-cycle policies asked for.", ["event", "action"]
)
pod_writes = Counter(
    "hekla_pod_writes", "Pods created or deleted in Kubernetes.", ["verb", "result"]
)
jobs_ended = Counter("hekla_jobs_ended", "Jobs that came to an end.", ["phase", "queue_name"])
job_to_pod_creation = Histogram(
    "volcano_controller_job_to_pod_creation_latency_milliseconds",
    "From a job's creation to the creation of its pod.",
    buckets=exponential(50, 60_000, 30),
)
queue_pod_groups = {
    phase: Gauge(
        f"volcano_queue_pod_group_{phase.lower()}_count",
        f"Pod groups of the queue that are {phase}.",
        ["queue_name"],
    )
    for phase in ("Inqueue", "Pending", "Running", "Unknown", "Completed")
}
"""By phase."""

# ---- mirror ----------------------------------------------------------------------------

mirror_steps = Counter(
    "hekla_mirror_steps", "Rows changed after their custom resources.", ["kind", "step"]
)
mirror_writes = Counter(
    "hekla_mirror_writes",
    "Custom resources written after their rows.",
    ["kind", "verb", "result"],
)
mirror_refused = Counter(
    "hekla_mirror_refused", "Custom resources told why they are not taken.", ["kind", "reason"]
)
mirror_seconds = Histogram(
    "hekla_mirror_seconds",
    "From news of a custom resource to its row (in), of a row to its status (out).",
    ["kind", "direction"],
    buckets=_SECONDS,
)
mirror_waiting = Gauge(
    "hekla_mirror_waiting", "Objects that are due, or whose status is to be written.", ["kind"]
)

# ---- flow ------------------------------------------------------------------------------

flows_succeeded = Gauge(
    "volcano_jobflow_succeed_phase_count", "Flows that succeeded.", ["jobflow_namespace"]
)
flows_failed = Gauge(
    "volcano_jobflow_failed_phase_count", "Flows that failed.", ["jobflow_namespace"]
)

# ---- scheduler -------------------------------------------------------------------------

scheduling_latency = Histogram(
    "volcano_e2e_scheduling_latency_milliseconds",
    "A whole cycle.",
    buckets=exponential(1, 5000, 20),
)
action_latency = Histogram(
    "volcano_action_scheduling_latency_milliseconds",
    "One action of a session.",
    ["action"],
    buckets=exponential(1, 2000, 20),
)
task_latency = Histogram(
    "volcano_task_scheduling_latency_milliseconds",
    "From a pod's creation to a stage of its scheduling.",
    ["stage"],
    buckets=exponential(50, 60_000, 30),
)
unscheduled_jobs = Gauge("volcano_unschedule_job_count", "Jobs that could not be scheduled.")
binds = Counter("hekla_binds", "Pods bound to nodes.", ["result"])
cluster_nodes = Gauge("hekla_cluster_nodes", "Nodes in the scheduler's cache.")
cluster_pods = Gauge("hekla_cluster_pods", "Pods in the scheduler's cache.")
pods_without_group = Gauge(
    "hekla_pods_without_group", "Pods of ours that belong to no pod group, and so wait."
)

"""Well-known names: labels, annotations, queues. Volcano's where it has one."""

from __future__ import annotations

from typing import Final, NamedTuple

JOB_API_VERSION: Final = "batch.volcano.sh/v1alpha1"
SCHEDULING_API_VERSION: Final = "scheduling.volcano.sh/v1beta1"
FLOW_API_VERSION: Final = "flow.volcano.sh/v1alpha1"
BUS_API_VERSION: Final = "bus.volcano.sh/v1alpha1"
TOPOLOGY_API_VERSION: Final = "topology.volcano.sh/v1alpha1"
NODE_INFO_API_VERSION: Final = "nodeinfo.volcano.sh/v1alpha1"

ROOT_QUEUE: Final = "root"
DEFAULT_QUEUE: Final = "default"
SCHEDULER_NAME: Final = "volcano"

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
"""Annotation that binds a pod to its pod group."""
TASK_SPEC: Final = "volcano.sh/task-spec"
TASK_INDEX: Final = "volcano.sh/task-index"
JOB_NAME: Final = "volcano.sh/job-name"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
QUEUE_NAME: Final = "volcano.sh/queue-name"
JOB_VERSION: Final = "volcano.sh/job-version"
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
TEMPLATE_UID: Final = "volcano.sh/template-uid"
PARTITION_ID: Final = "volcano.sh/partition-id"
NUMA_POLICY: Final = "volcano.sh/numa-topology-policy"
PREEMPTABLE: Final = "volcano.sh/preemptable"
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"
JDB_MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
JDB_MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"

CREATED_BY_JOB_FLOW: Final = "volcano.sh/createdByJobFlow"
"""Label and annotation of a job that is a step of a flow: ``<namespace>.<flow>``."""
CREATED_BY_JOB_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"
"""Label and annotation of a job that was made from a template: ``<namespace>.<template>``."""

ATTEMPT_UID: Final = "hekla.io/attempt-uid"
"""Annotation that binds a pod to its attempt row."""
RUN: Final = "hekla.io/run"
"""Annotation: which run of its index the pod is, from 0."""
JOB_UID: Final = "hekla.io/job-uid"
"""Label of everything the controller makes for a job."""
GROUP_UID: Final = "hekla.io/group-uid"
"""Annotation: uid of the pod's group, so that no pod is taken for one of an older group."""
REQUEST_ID: Final = "hekla.io/request-id"
"""Annotation of a custom resource that a call of gRPC wrote: which call."""
REQUEST_HASH: Final = "hekla.io/request-hash"
"""Annotation beside it: a hash of what the call asked for."""
JOBS_STAY: Final = "hekla.io/jobs-stay"
"""Annotation of a flow that was removed, and whose jobs were not to go with it."""
OUTCOME_FINALIZER: Final = "hekla.io/outcome"
CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"
"""Annotation of a queue: ``true`` if it was closed with its parent, and opens with it."""
SIMULATE_DURATION: Final = "hekla.io/simulate-duration"
SIMULATE_EXIT_CODE: Final = "hekla.io/simulate-exit-code"


class Key(NamedTuple):
    """Names one namespaced object of a kind."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def pod_name(job: str, task: str, index: int) -> str:
    """The name of the pod at ``index`` of a job's task."""
    return f"{job}-{task}-{index}"


def pod_group_name(job: str, uid: str) -> str:
    """The name of a job's pod group."""
    return f"{job}-{uid}"


def job_of_pod_group(group: str, uid: str) -> str:
    """The name of the job of that uid, given its pod group's."""
    return group.removesuffix(f"-{uid}")


def flow_job_name(flow: str, step: str) -> str:
    """The name of the job that is a flow's step."""
    return f"{flow}-{step}"

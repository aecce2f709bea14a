"""Jobs are completed and judged as the webhook promises. C-numbers name published cases."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from hekla.api import convert, decode
from hekla.api.job import (
    DependsOn,
    Job,
    LifecyclePolicy,
    PartitionPolicySpec,
    TaskSpec,
    VolumeSpec,
)
from hekla.api.meta import NetworkTopologySpec, ObjectMeta
from hekla.domain.phases import JobEvent, QueueState
from hekla.v1 import job_pb2
from services.webhook.rules.admission import Admission, Operation, admit
from services.webhook.rules.policies import ACTIONS
from services.webhook.rules.world import Limits
from tests.support.objects import (
    job_manifest,
    make_job,
    make_policy,
    make_queue,
    make_task,
    models,
    pod_template,
)
from tests.support.worlds import FixedWorld

WORLD = FixedWorld()


def created(job: Job, world: FixedWorld = WORLD) -> Admission[Job]:
    return admit(Operation.CREATE, job, None, world)


def accepted(job: Job, world: FixedWorld = WORLD) -> Job:
    answer = created(job, world)
    assert answer.violations == ()
    return answer.object


def refused(job: Job, world: FixedWorld = WORLD) -> dict[str, str]:
    answer = created(job, world)
    assert not answer.allowed
    return {violation.path: violation.message for violation in answer.violations}


def tasks_of(job: Job) -> list[TaskSpec]:
    assert job.spec.tasks is not None
    return job.spec.tasks


# ---- defaults ---------------------------------------------------------------------------


def test_a_job_that_says_little_is_completed() -> None:
    raw = job_manifest(minAvailable=0, tasks=[{"replicas": 2, "template": pod_template()}])
    del raw["metadata"]["namespace"]
    job = decode.read(raw | {"spec": raw["spec"] | {"queue": "", "maxRetry": 0}})
    assert isinstance(job, Job)

    spec = accepted(job).spec

    assert (spec.queue, spec.scheduler_name, spec.max_retry) == ("default", "volcano", 3)
    assert spec.min_available == 2
    assert accepted(job).metadata.namespace == "default"
    [task] = spec.tasks or []
    assert (task.name, task.min_available, task.max_retry) == ("default0", 2, 3)


def test_what_a_job_says_stays() -> None:
    task = make_task(min_available=0, max_retry=5)
    job = make_job("j", task, min_available=1, max_retry=1, scheduler_name="other")

    spec = accepted(job).spec

    assert (spec.min_available, spec.max_retry, spec.scheduler_name) == (1, 1, "other")
    assert (tasks_of(job)[0].min_available, tasks_of(job)[0].max_retry) == (0, 5)


def test_the_least_is_the_sum_of_what_tasks_need() -> None:
    """C04: tasks (3, min 2) and (2, unset)."""
    job = make_job("j", make_task("a", 3, min_available=2), make_task("b", 2), min_available=0)

    assert accepted(job).spec.min_available == 4


def test_whole_partitions_are_the_least_a_task_needs() -> None:
    policy = PartitionPolicySpec(total_partitions=3, partition_size=2, min_partitions=2)

    [task] = tasks_of(accepted(make_job("j", make_task("t", 6, partition_policy=policy))))

    assert task.min_available == 4


@pytest.mark.parametrize(
    ("plugins", "filled"),
    [
        (None, None),
        ({}, {}),
        ({"env": []}, {"env": []}),
        ({"tensorflow": []}, {"tensorflow": [], "svc": []}),
        ({"mpi": ["--master=t"]}, {"mpi": ["--master=t"], "svc": [], "ssh": []}),
        ({"pytorch": [], "svc": ["a"]}, {"pytorch": [], "svc": ["a"]}),
        ({"ray": []}, {"ray": [], "svc": []}),
        ({"hcclrank": []}, {"hcclrank": []}),
    ],
)
def test_frameworks_bring_the_plugins_they_need(plugins: Any, filled: Any) -> None:
    assert accepted(make_job(plugins=plugins)).spec.plugins == filled


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ({"hostNetwork": True}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dnsPolicy": "Default"}, "Default"),
        ({"hostNetwork": False}, None),
        ({}, None),
    ],
)
def test_pods_on_the_network_of_their_node_still_find_the_cluster(
    spec: dict[str, Any], policy: str | None
) -> None:
    template = pod_template(**spec)

    [task] = tasks_of(accepted(make_job("j", make_task(template=template))))

    assert task.template is not None
    assert task.template["spec"].get("dnsPolicy") == policy
    assert "ClusterFirstWithHostNet" not in str(template), "the caller's data is the caller's"


# ---- policies ---------------------------------------------------------------------------

LEVELS = pytest.mark.parametrize("level", ["job", "task"])


def with_policies(level: str, *policies: LifecyclePolicy) -> Job:
    if level == "job":
        return make_job(policies=list(policies))
    return make_job("j", make_task(policies=list(policies)))


@LEVELS
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("event", list(JobEvent))
def test_every_public_event_and_action_is_accepted(event: str, action: str, level: str) -> None:
    """C02."""
    accepted(with_policies(level, make_policy(action, event=event)))


def test_there_are_eight_public_actions() -> None:
    assert len(ACTIONS) == 8


@LEVELS
@pytest.mark.parametrize("event", ["OutOfSync", "CommandIssued", "PodRunning", "Podfailed"])
def test_internal_and_unknown_events_are_refused(event: str, level: str) -> None:
    assert refused(with_policies(level, make_policy(event=event)))


@LEVELS
@pytest.mark.parametrize("trigger", [{"event": "PodFailed"}, {"exit_code": 1}])
@pytest.mark.parametrize(
    "action",
    [
        "SyncJob",
        "EnqueueJob",
        "Enqueue",
        "SyncQueue",
        "OpenQueue",
        "CloseQueue",
        "",
        None,
        "Go",
    ],
)
def test_internal_actions_are_refused_whatever_triggers_them(
    action: str | None, trigger: dict[str, Any], level: str
) -> None:
    """C01."""
    [path] = refused(with_policies(level, make_policy(action, **trigger)))

    assert path.endswith("policies[0].action")


@LEVELS
@pytest.mark.parametrize(
    ("policies", "path"),
    [
        ([make_policy(event="PodFailed", exit_code=3)], "[0]"),
        ([make_policy()], "[0]"),
        ([make_policy(events=[])], "[0]"),
        ([make_policy(exit_code=0)], "[0].exitCode"),
        ([make_policy(event="*"), make_policy("AbortJob", event="PodFailed")], "[0]"),
        ([make_policy(events=["PodFailed", "*"])], "[0]"),
        (
            [make_policy(event="PodFailed"), make_policy(events=["PodEvicted", "PodFailed"])],
            "[1].events[1]",
        ),
        ([make_policy(exit_code=3), make_policy("AbortJob", exit_code=3)], "[1].exitCode"),
        ([make_policy(event="PodFailed", timeout="-1s")], "[0].timeout"),
    ],
)
def test_policies_that_contradict_each_other_are_refused(
    policies: list[LifecyclePolicy], path: str, level: str
) -> None:
    """C03."""
    place = "spec.policies" if level == "job" else "spec.tasks[0].policies"

    assert list(refused(with_policies(level, *policies))) == [f"{place}{path}"]


@LEVELS
@pytest.mark.parametrize(
    "policies",
    [
        [make_policy(events=["PodFailed", "PodFailed"])],
        [make_policy(event="PodFailed", events=["PodFailed", "PodEvicted"])],
        [make_policy(event="*"), make_policy(exit_code=3)],
        [make_policy(exit_code=-1)],
        [make_policy(event="PodFailed", timeout="10m")],
    ],
)
def test_policies_that_agree_are_accepted(policies: list[LifecyclePolicy], level: str) -> None:
    accepted(with_policies(level, *policies))


def test_a_task_may_react_to_what_its_job_reacts_to() -> None:
    policies = [make_policy(event="PodFailed")]

    accepted(make_job("j", make_task(policies=policies), policies=policies))


def test_a_pending_policy_without_a_timeout_is_warned_of() -> None:
    """C24."""
    policies = [make_policy(event="PodPending"), make_policy(event="PodFailed")]

    [warning] = created(make_job(policies=policies)).warnings

    assert warning == "spec.policies[0]: PodPending without a timeout does nothing"


# ---- counts and names -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "path", "message"),
    [
        (
            make_job("j", make_task(replicas=-1)),
            "spec.tasks[0].replicas",
            "must be >= 0, is -1",
        ),
        (
            make_job("j", make_task("t", 2, min_available=3)),
            "spec.tasks[0].minAvailable",
            "must be <= replicas, which is 2; is 3",
        ),
        (
            make_job("j", make_task(min_available=-1)),
            "spec.tasks[0].minAvailable",
            "must be >= 0",
        ),
        (
            make_job("j", make_task("a", 1), make_task("b", 2), min_available=4),
            "spec.minAvailable",
            "must be <= the replicas of all tasks, 3; is 4",
        ),
        (Job(metadata=ObjectMeta(name="j")), "spec.tasks", "is required"),
        (
            make_job("j", make_task("a"), make_task("b"), make_task("a")),
            "spec.tasks[2].name",
            'is the name of spec.tasks[0] too: "a"',
        ),
        (make_job(max_retry=-1), "spec.maxRetry", "must be >= 0"),
        (
            make_job(ttl_seconds_after_finished=-1),
            "spec.ttlSecondsAfterFinished",
            "must be >= 0",
        ),
        (make_job(min_success=0), "spec.minSuccess", "must be >= 1"),
        (make_job("j", make_task("T")), "spec.tasks[0].name", "must consist of lower case"),
        (make_job("x" * 64), "metadata.name", "must be no more than 63 characters, has 64"),
        (make_job("J"), "metadata.name", "must consist of lower case"),
        (make_job("j_1"), "metadata.name", "must consist of lower case"),
        (make_job("jö"), "metadata.name", "must consist of lower case"),
        (make_job("", make_task()), "metadata.name", "is required"),
        (
            make_job("j", make_task("t", 99_999), make_task("u", 2)),
            "spec.tasks",
            "must not ask for more than 100000 pods, asks for 100001",
        ),
    ],
)
def test_counts_and_names_that_cannot_work_are_refused(
    job: Job, path: str, message: str
) -> None:
    """C04, C08."""
    assert message in refused(job)[path]


def test_no_tasks_is_not_one_task() -> None:
    assert "spec.tasks" in refused(make_job().model_copy(
        update={"spec": make_job().spec.model_copy(update={"tasks": []})}
    ))  # fmt: skip


@pytest.mark.parametrize("least", [None, 0])
def test_a_task_of_no_pods_is_accepted(least: int | None) -> None:
    """C04."""
    accepted(make_job("j", make_task(), make_task("none", 0, min_available=least)))


def test_a_pod_name_is_measured_at_its_largest_index() -> None:
    """C07."""
    fits = "j" * (63 - len("-t-9"))

    accepted(make_job(fits, make_task("t", 10)))
    problems = refused(make_job(fits, make_task("t", 11)))

    assert list(problems) == ["spec.tasks[0].name"]
    assert "64 characters" in problems["spec.tasks[0].name"]


def test_a_generated_name_is_measured_with_what_is_generated() -> None:
    job = make_job("", make_task())
    fits = ObjectMeta(generate_name="j" * (63 - len("xxxxx-t-0")))
    too_long = ObjectMeta(generate_name=f"{fits.generate_name}j")

    accepted(job.model_copy(update={"metadata": fits}))
    assert "spec.tasks[0].name" in refused(job.model_copy(update={"metadata": too_long}))


@pytest.mark.parametrize("plugin", ["svc", "tensorflow", "pytorch", "ray", "mpi"])
def test_a_job_that_gets_a_service_needs_a_name_for_one(plugin: str) -> None:
    """C08."""
    plugins = {plugin: ["--master=t"]}

    assert "Service" in refused(make_job("a.b", plugins=plugins))["metadata.name"]
    accepted(make_job("1job", plugins=plugins))
    accepted(make_job("a.b", plugins={"env": []}))


# ---- other parts ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "path", "message"),
    [
        (make_job(plugins={"evn": []}), "spec.plugins.evn", "is no plugin of jobs"),
        (make_job(plugins={"mpi": []}), "spec.plugins.mpi", 'needs the task "master"'),
        (
            make_job(plugins={"mpi": ["--master", "boss"]}),
            "spec.plugins.mpi",
            'needs the task "boss"',
        ),
        (
            make_job(
                network_topology=NetworkTopologySpec(
                    highest_tier_allowed=0, highest_tier_name="a"
                )
            ),
            "spec.networkTopology",
            "must not have both",
        ),
        (
            make_job(
                "j",
                make_task(
                    partition_policy=PartitionPolicySpec(
                        total_partitions=1,
                        partition_size=1,
                        network_topology=NetworkTopologySpec(
                            highest_tier_allowed=0, highest_tier_name="a"
                        ),
                    )
                ),
            ),
            "spec.tasks[0].partitionPolicy.networkTopology",
            "must not have both",
        ),
        (
            make_job(volumes=[VolumeSpec(mount_path="/a"), VolumeSpec(mount_path="/a")]),
            "spec.volumes[1].mountPath",
            "is the path of spec.volumes[0] too",
        ),
        (
            make_job(
                volumes=[VolumeSpec(mount_path="/a", volume_claim_name="b", volume_claim={})]
            ),
            "spec.volumes[0].volumeClaimName",
            "must be empty beside a volumeClaim",
        ),
        (
            make_job(volumes=[VolumeSpec(mount_path="/a", volume_claim_name="B")]),
            "spec.volumes[0].volumeClaimName",
            "must consist of",
        ),
        (
            make_job("j", make_task(depends_on=DependsOn(name=["t"]))),
            "spec.tasks[0].dependsOn.name[0]",
            "must not be the task itself",
        ),
        (
            make_job("j", make_task(depends_on=DependsOn(name=["x"]))),
            "spec.tasks[0].dependsOn.name[0]",
            'must be the name of another task, is "x"',
        ),
        (
            make_job("j", make_task(), make_task("u", depends_on=DependsOn(name=["t", "t"]))),
            "spec.tasks[1].dependsOn.name[1]",
            "is there twice",
        ),
        (
            make_job(
                "j",
                make_task("a"),
                make_task("b", depends_on=DependsOn(name=["a", "d"])),
                make_task("c", depends_on=DependsOn(name=["b"])),
                make_task("d", depends_on=DependsOn(name=["c"])),
            ),
            "spec.tasks[1].dependsOn",
            'must not go in a circle, as it does among "b", "c", "d"',
        ),
        (
            make_job(
                "j",
                make_task(
                    "t",
                    5,
                    partition_policy=PartitionPolicySpec(total_partitions=2, partition_size=2),
                ),
            ),
            "spec.tasks[0].partitionPolicy",
            "has 2 partitions of 2 pods, but replicas is 5",
        ),
        (
            make_job(
                "j",
                make_task(
                    "t",
                    4,
                    min_available=3,
                    partition_policy=PartitionPolicySpec(
                        total_partitions=2, partition_size=2, min_partitions=1
                    ),
                ),
            ),
            "spec.tasks[0].partitionPolicy.minPartitions",
            "makes 2 pods the least, but minAvailable is 3",
        ),
    ],
)
def test_parts_that_do_not_fit_each_other_are_refused(
    job: Job, path: str, message: str
) -> None:
    assert message in refused(job)[path]


def test_dependencies_without_a_circle_are_accepted() -> None:
    a, b = make_task("a"), make_task("b", depends_on=DependsOn(name=["a"], iteration="all"))
    c = make_task("c", depends_on=DependsOn(name=["b", "a"], iteration="any"))

    accepted(make_job("j", c, b, a))


def test_many_tasks_are_judged_in_time_that_grows_with_them() -> None:
    chain = [make_task("t0")]
    chain += [
        make_task(f"t{n}", depends_on=DependsOn(name=[f"t{n - 1}"])) for n in range(1, 2000)
    ]

    assert created(make_job("j", *reversed(chain))).allowed


# ---- queues -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queue", "message"),
    [
        ("nope", 'does not exist: "nope"'),
        ("root", "must not be root"),
        ("closed", 'must be an Open queue, is "closed", which is Closed'),
        ("closing", "which is Closing"),
        ("unknown", "which is Unknown"),
        ("parent", 'must be a queue without children, is "parent", which has child'),
    ],
)
def test_a_queue_that_takes_no_jobs_is_refused(queue: str, message: str) -> None:
    """C10, C107."""
    world = FixedWorld(
        make_queue("closed", QueueState.CLOSED),
        make_queue("closing", QueueState.CLOSING),
        make_queue("unknown", QueueState.UNKNOWN),
        make_queue("parent"),
        make_queue("child", parent="parent"),
    )

    assert message in refused(make_job(queue=queue), world)["spec.queue"]


def test_a_queue_without_a_state_yet_is_open() -> None:
    """C10."""
    accepted(make_job(queue="fresh"), FixedWorld(make_queue("fresh", state=None)))


# ---- warnings ---------------------------------------------------------------------------

WHOLE_CORES = pod_template(
    containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": 1}}}]
)


@pytest.mark.parametrize(
    ("job", "field"),
    [
        (make_job(plugins={"svc": []}), "spec.plugins.svc"),
        (make_job(network_topology=NetworkTopologySpec()), "spec.networkTopology"),
        (
            make_job(volumes=[VolumeSpec(mount_path="/a", volume_claim_name="b")]),
            "spec.volumes[0]",
        ),
        (make_job(min_success=2), "spec.minSuccess"),
        (
            make_job("j", make_task("a"), make_task("b", depends_on=DependsOn(name=["a"]))),
            "spec.tasks[1].dependsOn",
        ),
        (
            make_job(
                "j",
                make_task(
                    partition_policy=PartitionPolicySpec(total_partitions=1, partition_size=1)
                ),
            ),
            "spec.tasks[0].partitionPolicy",
        ),
        (
            make_job("j", make_task(policies=[make_policy(event="PodPending")])),
            "spec.tasks[0].policies[0]",
        ),
        (
            make_job("j", make_task(template=WHOLE_CORES, topology_policy="restricted")),
            "spec.tasks[0].topologyPolicy",
        ),
    ],
)
def test_what_has_no_effect_is_warned_of_by_its_field(job: Job, field: str) -> None:
    answer = created(job)

    assert answer.allowed
    assert [warning for warning in answer.warnings if warning.startswith(field)]


def test_a_volume_of_nothing_is_admitted_with_a_warning() -> None:
    answer = created(make_job(volumes=[VolumeSpec(mount_path="/a")]))

    assert answer.allowed
    assert any("emptyDir" in warning for warning in answer.warnings)


def test_an_ordinary_job_is_not_warned_of() -> None:
    policies = [make_policy(event="PodEvicted"), make_policy("AbortJob", exit_code=3)]

    assert created(make_job(plugins={"env": []}, policies=policies)).warnings == ()


# ---- updates ----------------------------------------------------------------------------


def updated(job: Job, old: Job) -> dict[str, str]:
    answer = admit(Operation.UPDATE, job, accepted(old), FixedWorld())
    return {violation.path: violation.message for violation in answer.violations}


def changed(job: Job, **spec: Any) -> Job:
    return job.model_copy(update={"spec": job.spec.model_copy(update=spec)})


def changed_task(job: Job, **values: Any) -> Job:
    first, *rest = tasks_of(job)
    return changed(job, tasks=[first.model_copy(update=values), *rest])


OLD = make_job("j", make_task("t", 2), make_task("u", 2), policies=[make_policy(event="*")])


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(OLD, id="nothing"),
        pytest.param(changed(OLD, min_available=1), id="minAvailable"),
        pytest.param(changed(OLD, min_available=0), id="minAvailable to zero"),
        pytest.param(changed(OLD, priority_class_name="high"), id="priorityClassName"),
        pytest.param(changed_task(OLD, replicas=3), id="more replicas"),
        pytest.param(changed_task(OLD, replicas=1), id="fewer replicas"),
        pytest.param(changed_task(OLD, min_available=1), id="task minAvailable"),
        pytest.param(changed(OLD, volumes=[], plugins={}), id="absent to empty"),
        pytest.param(changed(OLD, scheduler_name="volcano"), id="a default spelled out"),
        pytest.param(
            OLD.model_copy(update={"metadata": ObjectMeta(name="j", labels={"a": "b"})}),
            id="labels",
        ),
    ],
)
def test_an_update_may_change(job: Job) -> None:
    """C05, with #1706: the manifest that made the job may be applied again."""
    assert updated(job, OLD) == {}


OTHER = pod_template(terminationGracePeriodSeconds=5)


@pytest.mark.parametrize(
    ("job", "path"),
    [
        (changed(OLD, queue="other"), "spec.queue"),
        (changed(OLD, max_retry=5), "spec.maxRetry"),
        (changed(OLD, policies=[]), "spec.policies"),
        (changed(OLD, plugins={"env": []}), "spec.plugins"),
        (changed(OLD, scheduler_name="other"), "spec.schedulerName"),
        (changed(OLD, min_success=1), "spec.minSuccess"),
        (changed(OLD, ttl_seconds_after_finished=1), "spec.ttlSecondsAfterFinished"),
        (changed(OLD, volumes=[VolumeSpec(mount_path="/a")]), "spec.volumes"),
        (changed_task(OLD, template=OTHER), "spec.tasks[0].template"),
        (changed_task(OLD, name="x"), "spec.tasks[0].name"),
        (changed_task(OLD, max_retry=9), "spec.tasks[0].maxRetry"),
        (changed(OLD, tasks=tasks_of(OLD)[:1]), "spec.tasks"),
        (changed(OLD, tasks=[*tasks_of(OLD), make_task("v")]), "spec.tasks"),
        (changed(OLD, tasks=tasks_of(OLD)[::-1]), "spec.tasks[0].name"),
        (changed(OLD, min_available=5), "spec.minAvailable"),
        (changed_task(OLD, min_available=3), "spec.tasks[0].minAvailable"),
        (changed_task(OLD, replicas=-1), "spec.tasks[0].replicas"),
    ],
)
def test_an_update_must_not_change(job: Job, path: str) -> None:
    """C05."""
    assert path in updated(job, OLD)


def test_quantities_of_one_value_are_no_change() -> None:
    def asking(cpu: Any) -> Job:
        resources = {"requests": {"cpu": cpu}}
        container = {"name": "c", "image": "i", "resources": resources}
        return make_job("j", make_task(template=pod_template(containers=[container])))

    assert updated(asking("1000m"), asking(1)) == {}
    assert "spec.tasks[0].template" in updated(asking("2"), asking(1))


def test_claims_that_were_made_are_no_change_and_are_kept() -> None:
    """C05."""
    volume = VolumeSpec(mount_path="/a", volume_claim={"storageClassName": "x"})
    old = make_job(volumes=[volume.model_copy(update={"volume_claim_name": "made"})])

    answer = admit(Operation.UPDATE, make_job(volumes=[volume]), old, FixedWorld())

    assert "spec.volumes" not in [violation.path for violation in answer.violations]
    [kept] = answer.object.spec.volumes or []
    assert kept.volume_claim_name == "made"


def test_a_pod_name_is_measured_when_a_job_grows() -> None:
    """C07."""
    old = make_job("j" * (63 - len("-t-9")), make_task("t", 10))

    assert "spec.tasks[0].name" in updated(changed_task(old, replicas=11), old)


def test_a_job_keeps_its_scheduler_when_the_default_becomes_another() -> None:
    other = Limits(scheduler_name="other")

    answer = admit(Operation.UPDATE, make_job(), accepted(make_job()), FixedWorld(), other)

    assert answer.allowed
    assert answer.object.spec.scheduler_name == "volcano"


def test_an_update_needs_what_it_replaces() -> None:
    assert not admit(Operation.UPDATE, make_job(), None, FixedWorld()).allowed


def test_a_job_may_always_be_deleted() -> None:
    assert admit(Operation.DELETE, make_job("J"), None, FixedWorld()).allowed


# ---- anything ---------------------------------------------------------------------------


@given(models(Job), models(Job))
@settings(max_examples=20)
def test_no_job_breaks_the_rules(job: Job, old: Job) -> None:
    for operation in Operation:
        answer = admit(operation, job, old, FixedWorld())
        assert answer.allowed is not bool(answer.violations)
        assert all(str(violation).isprintable() for violation in answer.violations)
        assert all(warning.isprintable() for warning in answer.warnings)


@given(models(Job))
@settings(max_examples=20)
def test_judging_twice_changes_nothing_more(job: Job) -> None:
    once = created(job)
    again = created(once.object)

    assert again.object == once.object
    assert set(again.violations) == set(once.violations)


def test_what_is_admitted_can_be_sent() -> None:
    job = accepted(make_job("j", make_task("t", 100_000)))

    assert convert.to_model(convert.to_message(job, job_pb2.Job), Job) == job


def test_an_installation_may_choose() -> None:
    answer = admit(
        Operation.CREATE,
        make_job("j", make_task("t", 3)),
        None,
        FixedWorld(),
        Limits(scheduler_name="mine", max_pods_per_job=2),
    )

    assert answer.object.spec.scheduler_name == "mine"
    assert [violation.path for violation in answer.violations] == ["spec.tasks"]

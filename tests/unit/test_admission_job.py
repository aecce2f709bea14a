"""Jobs are judged as the webhook promises. C-numbers name published cases."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from hekla.api import convert
from hekla.api.job import (
    DependsOn,
    Job,
    PartitionPolicySpec,
    VolumeSpec,
)
from hekla.api.meta import NetworkTopologySpec, ObjectMeta
from hekla.domain.phases import QueueState
from hekla.v1 import job_pb2
from services.webhook.rules.admission import Operation, admit
from services.webhook.rules.world import Limits
from tests.support.admission import accepted, created, refused
from tests.support.objects import (
    make_job,
    make_queue,
    make_task,
    models,
)
from tests.support.worlds import FixedWorld

# ---- counts and names --------------------------------------------------------------------


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


# ---- other parts -------------------------------------------------------------------------


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


# ---- queues ------------------------------------------------------------------------------


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


# ---- anything ----------------------------------------------------------------------------


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

"""What is admitted with a warning, since it has no effect."""

from __future__ import annotations

import pytest

from hekla.api.job import (
    DependsOn,
    Job,
    PartitionPolicySpec,
    VolumeSpec,
)
from hekla.api.meta import NetworkTopologySpec
from tests.support.admission import created
from tests.support.objects import (
    make_job,
    make_policy,
    make_task,
    pod_template,
)

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

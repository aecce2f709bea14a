"""The jobs of steps: what a patch changes, what is remembered of them, what they are called."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings

from hekla.api.bounds import violations
from hekla.api.decode import encode
from hekla.api.job import JobCondition, JobSpec, TaskSpec, TaskState, VolumeSpec
from hekla.api.job_flow import JobSpecPatch, TaskSpecPatch
from hekla.domain import syntax
from hekla.domain.names import Key
from services.flow.core.jobs import flow_of, forgotten, label_value, request_id
from services.flow.core.patch import patched
from services.flow.core.sighting import MOST_HISTORIES, sighting
from tests.support.flows import UID, at, seen, seen_job
from tests.support.objects import make_job, make_policy, make_task, models, pod_template

CONTAINER: dict[str, Any] = {
    "name": "c",
    "image": "busybox",
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    "ports": [{"containerPort": 80, "name": "http"}],
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
}


def merged(given_: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """A pod's spec after a patch of it."""
    spec = JobSpec(tasks=[make_task("t", template={"spec": given_})])
    task = TaskSpecPatch(name="t", template={"spec": patch})
    [found] = patched(spec, JobSpecPatch(tasks=[task])).tasks or []
    assert found.template is not None
    return dict(found.template["spec"])


def test_no_patch_changes_nothing() -> None:
    spec = make_job("j", queue="q").spec

    assert patched(spec, None) is spec
    assert patched(spec, JobSpecPatch()) == spec


def test_a_patch_changes_what_it_names() -> None:
    spec = make_job("j", make_task("a", 2), make_task("b"), queue="q", max_retry=5).spec

    changed = patched(
        spec,
        JobSpecPatch(
            queue="other",
            plugins={"env": []},
            policies=[make_policy("AbortJob", event="PodFailed")],
            tasks=[TaskSpecPatch(name="a", replicas=4), TaskSpecPatch(name="c", replicas=1)],
        ),
    )

    assert (changed.queue, changed.max_retry, changed.plugins) == ("other", 5, {"env": []})
    sizes = [(task.name, task.replicas) for task in changed.tasks or ()]
    assert sizes == [("a", 4), ("b", 1), ("c", 1)]
    assert isinstance((changed.tasks or [])[2], TaskSpec)
    assert (changed.tasks or [])[0].template == (spec.tasks or [])[0].template


def test_plugins_are_merged_by_name_and_volumes_by_where_they_are_mounted() -> None:
    spec = JobSpec(
        plugins={"env": [], "svc": ["--a"]},
        volumes=[
            VolumeSpec(mount_path="/a", volume_claim_name="x"),
            VolumeSpec(mount_path="/b"),
        ],
    )

    changed = patched(
        spec,
        JobSpecPatch(
            plugins={"svc": []},
            volumes=[
                VolumeSpec(mount_path="/a", volume_claim_name="y"),
                VolumeSpec(mount_path="/c"),
            ],
        ),
    )

    assert changed.plugins == {"env": [], "svc": []}
    places = [(one.mount_path, one.volume_claim_name) for one in changed.volumes or ()]
    assert places == [("/a", "y"), ("/b", None), ("/c", None)]


@pytest.mark.parametrize(
    ("patch", "path", "value"),
    [
        ({"image": "nginx"}, "image", "nginx"),
        ({"command": ["a"]}, "command", ["a"]),
        (
            {"env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]},
            "env",
            [
                {"name": "A", "value": "1"},
                {"name": "B", "value": "3"},
                {"name": "C", "value": "4"},
            ],
        ),
        (
            {"ports": [{"containerPort": 80, "protocol": "UDP"}]},
            "ports",
            [{"containerPort": 80, "name": "http", "protocol": "UDP"}],
        ),
        (
            {"resources": {"requests": {"cpu": "2"}}},
            "resources",
            {"requests": {"cpu": "2", "memory": "1Gi"}},
        ),
        ({"env": None}, "env", None),
        ({"env": "odd"}, "env", "odd"),
        ({"env": [{"name": ["odd"]}, 5]}, "env", [*CONTAINER["env"], {"name": ["odd"]}, 5]),
    ],
)
def test_containers_are_merged_by_name(patch: dict[str, Any], path: str, value: Any) -> None:
    other = {"name": "other", "image": "x"}
    found = merged({"containers": [CONTAINER, other]}, {"containers": [{"name": "c"} | patch]})

    [container, untouched] = found["containers"]
    assert container.get(path) == value
    assert untouched == other
    rest = {key: kept for key, kept in CONTAINER.items() if key != path}
    assert {key: kept for key, kept in container.items() if key != path} == rest


def test_what_is_given_as_a_whole_is_replaced() -> None:
    given_ = {
        "affinity": {"nodeAffinity": {"a": 1}},
        "nodeSelector": {"zone": "a", "disk": "ssd"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    patch = {
        "affinity": {"podAffinity": {}},
        "nodeSelector": {"zone": "b"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
    }

    found = merged(given_, patch)

    assert found["affinity"] == {"podAffinity": {}}
    assert found["nodeSelector"] == {"zone": "b", "disk": "ssd"}
    assert [one["key"] for one in found["tolerations"]] == ["gpu", "spot"]


@given(models(JobSpec), models(JobSpecPatch))
@settings(max_examples=15)
def test_a_patched_spec_is_a_spec_and_patching_again_changes_nothing(
    spec: JobSpec, patch: JobSpecPatch
) -> None:
    once = patched(spec, patch)

    assert JobSpec.model_validate(encode(once), by_alias=True, by_name=False) == once
    violations(once)
    named = [task.name for task in (*(spec.tasks or ()), *(patch.tasks or ()))]
    if len(set(named)) == len(named):
        assert patched(once, patch) == once


def test_the_template_is_not_changed_by_a_patch_of_it() -> None:
    template = pod_template()
    spec = JobSpec(tasks=[make_task("t", template=template)])
    patch = {"spec": {"containers": [{"name": "c", "image": "nginx"}]}}

    patched(spec, JobSpecPatch(tasks=[TaskSpecPatch(name="t", template=patch)]))

    assert template == pod_template()


# ---- what is remembered -----------------------------------------------------------------


def conditions(*phases: str) -> list[JobCondition]:
    return [
        JobCondition(status=phase, last_transition_time=at(number))
        for number, phase in enumerate(phases)
    ]


def test_a_sighting_says_what_the_flow_shows_of_a_job() -> None:
    counts = {"t": TaskState(phase={"Succeeded": 2})}
    found = seen(
        "f-a", "Completed", retry_count=1, running_duration="3s", task_status_count=counts
    )

    assert (found.status.name, found.status.state) == ("f-a", "Completed")
    assert found.status.restart_count == 1
    assert (found.status.start_timestamp, found.status.end_timestamp) == (at(0), at(0))
    assert (found.condition.phase, found.condition.running_duration) == ("Completed", "3s")
    assert found.condition.task_status_count == counts


def test_phases_that_nobody_saw_are_in_the_history_too() -> None:
    found = seen("f-a", "Completed", conditions=conditions("Pending", "Running", "Completed"))

    entries = [
        (one.state, one.start_timestamp, one.end_timestamp)
        for one in found.status.running_histories or ()
    ]
    assert entries == [
        ("Pending", at(0), at(1)),
        ("Running", at(1), at(2)),
        ("Completed", at(2), None),
    ]


def test_the_history_of_a_job_that_restarts_goes_on() -> None:
    """C105: a job tells only of the last time it was in a phase; we remember the first."""
    first = seen("f-a", "Running", conditions=conditions("Pending", "Running"))
    later = [
        JobCondition(status="Restarting", last_transition_time=at(5)),
        JobCondition(status="Pending", last_transition_time=at(6)),
        JobCondition(status="Running", last_transition_time=at(7)),
    ]

    found = sighting(seen_job("f-a", "Running", conditions=later), first)

    states = [one.state for one in found.status.running_histories or ()]
    assert states == ["Pending", "Running", "Restarting", "Pending", "Running"]
    assert sighting(seen_job("f-a", "Running", conditions=later), found) == found


def test_a_history_does_not_grow_for_ever() -> None:
    found = None
    for number in range(3 * MOST_HISTORIES):
        phase = ("Running", "Restarting")[number % 2]
        condition = JobCondition(status=phase, last_transition_time=at(number))
        found = sighting(seen_job("f-a", phase, conditions=[condition]), found)

    assert found is not None
    assert len(found.status.running_histories or ()) == MOST_HISTORIES


def test_of_a_job_that_is_forgotten_what_was_seen_stays() -> None:
    before = seen("f-a", "Completed")

    assert sighting(forgotten(Key("default", "f-a"), UID), before) == before


# ---- names ------------------------------------------------------------------------------


def test_a_label_that_would_be_too_long_is_shortened_and_stays_one_of_a_kind() -> None:
    one, other = "n" * 40 + "." + "f" * 40, "n" * 40 + "." + "f" * 41

    assert label_value("default.f") == "default.f"
    for text in (one, other, "x" * 53 + "." * 20):
        assert syntax.label_value_error(label_value(text)) is None
    assert label_value(one) != label_value(other)


def test_a_request_id_follows_from_flow_step_and_attempt() -> None:
    first = request_id(UID, "a", 0)

    assert request_id(UID, "a", 0) == first
    others = {
        request_id(UUID(int=8), "a", 0),
        request_id(UID, "b", 0),
        request_id(UID, "a", 1),
        request_id(UID, "a", 0, "delete"),
    }
    assert first not in others
    assert len(others) == 4


def test_a_job_of_nobody_is_no_flows() -> None:
    assert flow_of(make_job()) is None

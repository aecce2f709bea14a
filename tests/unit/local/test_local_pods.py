from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hekla.local.kinds.registry import SECRETS, Kind, Object
from hekla.local.nodes import pod_status
from hekla.local.nodes.addresses import Addresses
from hekla.local.nodes.pod_status import Container, Running, Terminated, Waiting
from hekla.local.rules import pods
from hekla.local.runtimes import environment
from hekla.local.runtimes.environment import ConfigError, Place
from hekla.local.runtimes.processes import Process

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PLACE = Place(node="n", ip="127.1.0.1", home="/h", allocatable={"memory": 2**30})
RUNS = Container(Running(NOW))
WAITS = Container(Waiting())


def over(code: int, *, last: int | None = None) -> Container:
    ended = pod_status.exited(code, NOW, NOW)
    before = None if last is None else pod_status.exited(last, NOW, NOW)
    return Container(ended, before)


def crashing(code: int) -> Container:
    return Container(Waiting("CrashLoopBackOff"), pod_status.exited(code, NOW, NOW), 1)


def make_pod(**spec: Any) -> Object:
    pod: Object = {
        "metadata": {"name": "p", "namespace": "d", "uid": "u"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }
    pods.defaults(pod)
    return pod


def phase_of(
    policy: str,
    containers: list[Container],
    inits: list[tuple[str, Container]] | None = None,
    *,
    final: bool = False,
) -> str:
    """The phase of a pod with these containers; a name that begins with S is a sidecar's."""
    states = {f"c{index}": item for index, item in enumerate(containers)}
    spec: Object = {"restartPolicy": policy, "containers": [{"name": name} for name in states]}
    spec["initContainers"] = [
        {"name": name} | ({"restartPolicy": "Always"} if name.startswith("S") else {})
        for name, _ in inits or []
    ]
    return pod_status.phase(spec, states | dict(inits or []), final=final)


@pytest.mark.parametrize(
    ("policy", "containers", "phase"),
    [
        pytest.param("Never", [WAITS], "Pending", id="nothing has started"),
        pytest.param("Never", [RUNS, WAITS], "Pending", id="not all have started"),
        pytest.param("Never", [RUNS, RUNS], "Running", id="all run"),
        pytest.param("Never", [RUNS, over(0)], "Running", id="one is over"),
        pytest.param("Never", [RUNS, over(1)], "Running", id="one has failed"),
        pytest.param("Never", [over(0), over(0)], "Succeeded", id="all went well"),
        pytest.param("Never", [over(0), over(1)], "Failed", id="not all went well"),
        pytest.param("OnFailure", [over(0)], "Succeeded", id="well, so not again"),
        pytest.param("OnFailure", [over(1)], "Running", id="failed, so once more"),
        pytest.param("OnFailure", [crashing(1)], "Running", id="waits to start again"),
        pytest.param("Always", [over(0)], "Running", id="always once more"),
    ],
)
def test_the_phase_of_a_pod_follows_from_its_containers(
    policy: str, containers: list[Container], phase: str
) -> None:
    assert phase_of(policy, containers) == phase


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (143, "Failed")])
def test_a_pod_that_is_made_to_end_does_not_go_on(code: int, phase: str) -> None:
    assert phase_of("Always", [over(code)], final=True) == phase


@pytest.mark.parametrize(
    ("policy", "inits", "main", "final", "phase"),
    [
        pytest.param("Never", [("i", RUNS)], WAITS, False, "Pending", id="still prepares"),
        pytest.param(
            "OnFailure", [("i", crashing(1))], WAITS, False, "Pending", id="tries again"
        ),
        pytest.param("Never", [("i", over(1))], WAITS, True, "Failed", id="could not prepare"),
        pytest.param("Never", [("i", over(0))], RUNS, False, "Running", id="is prepared"),
        pytest.param("Never", [("i", over(0))], over(0), True, "Succeeded", id="all went well"),
        pytest.param("Never", [("S", RUNS)], over(0), False, "Running", id="a sidecar runs on"),
        pytest.param(
            "Never", [("S", over(143))], over(0), True, "Succeeded", id="and is ended"
        ),
        pytest.param("Never", [("S", over(0))], over(3), True, "Failed", id="it helps nobody"),
    ],
)
def test_init_containers_hold_a_pod_back_and_sidecars_do_not_count(
    policy: str, inits: list[tuple[str, Container]], main: Container, *, final: bool, phase: str
) -> None:
    assert phase_of(policy, [main], inits, final=final) == phase


def test_a_container_whose_turn_has_not_come_says_what_it_waits_for() -> None:
    pod = make_pod(initContainers=[{"name": "i", "image": "x"}, {"name": "j", "image": "x"}])

    status = pod_status.build(pod, {"i": RUNS}, ip="1", now=NOW)

    reasons = [
        item["state"].get("waiting", {}).get("reason")
        for item in [*status["initContainerStatuses"], *status["containerStatuses"]]
    ]
    assert reasons == [None, "PodInitializing", "PodInitializing"]
    assert status["containerStatuses"][0]["containerID"] == ""
    conditions = {item["type"]: item["status"] for item in status["conditions"]}
    assert conditions["Initialized"] == "False"
    after = pod_status.build(pod, {"i": over(0), "j": over(0), "c": RUNS}, ip="1", now=NOW)
    assert [item["ready"] for item in after["initContainerStatuses"]] == [True, True]
    assert {item["status"] for item in after["conditions"]} == {"True"}


@pytest.mark.parametrize(
    ("seconds", "wait"),
    [([], 1), ([1], 1), ([1, 1], 2), ([1] * 5, 16), ([1] * 50, 60), ([1, 1, 700, 1], 2)],
)
def test_a_container_that_keeps_ending_waits_longer_until_it_has_run_well(
    seconds: list[float], wait: float
) -> None:
    runs = [pod_status.exited(1, NOW, NOW + timedelta(seconds=each)) for each in seconds]

    assert pod_status.back_off(runs) == wait


def test_a_condition_keeps_its_time_until_its_value_changes() -> None:
    pod = make_pod()
    pod["status"] = pod_status.build(pod, {"c": RUNS}, ip="1", now=NOW)
    later = NOW + timedelta(hours=1)

    same = pod_status.build(pod, {"c": RUNS}, ip="1", now=later)
    other = pod_status.build(pod, {"c": over(0)}, ip="1", now=later)

    def ready(status: Object) -> Object:
        [found] = [item for item in status["conditions"] if item["type"] == "Ready"]
        return dict(found)

    assert same == pod["status"]
    assert ready(same)["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert ready(other)["lastTransitionTime"] == "2026-01-02T04:04:05Z"
    assert ready(other)["status"] == "False"


def test_conditions_of_others_are_kept() -> None:
    pod = make_pod()
    foreign = {"type": "DisruptionTarget", "status": "True"}
    pod["status"] = {"conditions": [foreign]}

    status = pod_status.build(pod, {"c": RUNS}, ip="1", now=NOW)

    assert foreign in status["conditions"]


@pytest.mark.parametrize(
    ("node", "phase", "asked", "grace"),
    [
        pytest.param("", "Pending", None, 0, id="it runs nowhere"),
        pytest.param("n", "Running", None, 30, id="its own time"),
        pytest.param("n", "Running", 5, 5, id="the time asked for"),
        pytest.param("n", "Running", 0, 0, id="by force"),
        pytest.param("n", "Succeeded", None, 0, id="it is over"),
    ],
)
def test_a_pod_gets_time_to_end_only_where_it_runs(
    node: str, phase: str, asked: int | None, grace: int
) -> None:
    pod = make_pod(**({"nodeName": node} if node else {}))
    pod["status"] = {"phase": phase}

    assert pods.grace(pod, asked) == grace


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"containers": []}, "spec.containers"),
        ({"containers": ["x"]}, "spec.containers[0]"),
        (
            {"containers": [{"name": "c", "image": "i", "command": "ls"}]},
            "spec.containers[0].command",
        ),
        ({"terminationGracePeriodSeconds": -1}, "spec.terminationGracePeriodSeconds"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector"),
        ({"nodeName": 5}, "spec.nodeName"),
        ({"overhead": {"cpu": "x"}}, "spec.overhead"),
    ],
)
def test_a_pod_that_cannot_be_run_is_refused_with_the_field(change: Object, field: str) -> None:
    assert [found.path for found in pods.check(make_pod(**change))] == [field]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    [
                        *("name", "image", "env", "resources", "requests", "command", "cpu"),
                        *("volumeMounts", "mountPath", "subPath", "envFrom", "restartPolicy"),
                        *("configMap", "projected", "sources", "items", "downwardAPI", "mode"),
                    ]
                ),
                inner,
                max_size=3,
            )
        ),
    ),
    st.sampled_from(
        ["containers", "initContainers", "nodeSelector", "overhead", "resources", "volumes"]
    ),
)
def test_whatever_stands_in_a_spec_is_judged_without_an_error(value: Any, field: str) -> None:
    for junk in (
        value,
        [value],
        [{"name": "c", "image": "i", "env": value, "resources": value}],
    ):
        pods.check(make_pod(**{field: junk}))


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("$(A)$(B)", "12"),
        ("$(NONE)", "$(NONE)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A", "$A"),
        ("$(A", "$(A"),
        ("100$", "100$"),
    ],
)
def test_references_in_words_are_replaced_where_the_name_is_known(
    text: str, expanded: str
) -> None:
    assert environment.expand(text, {"A": "1", "B": "2"}) == expanded


@given(st.text(alphabet="$AB", max_size=12))
def test_a_text_without_references_only_loses_escapes(text: str) -> None:
    assert environment.expand(text, {}) == text.replace("$$", "$")


def no_objects(_kind: Kind, _name: str) -> Object | None:
    return None


@pytest.mark.parametrize(
    "source",
    [
        {"fieldRef": {"fieldPath": "spec.bogus"}},
        {"fieldRef": {}},
        {"configMapKeyRef": {"name": "none", "key": "k"}},
        {"bogusRef": {}},
        {"secretKeyRef": "x"},
    ],
)
def test_a_source_that_is_missing_is_said_so(source: Object) -> None:
    container = {"name": "c", "env": [{"name": "X", "valueFrom": source}]}

    with pytest.raises(ConfigError):
        environment.build(make_pod(), container, PLACE, "/w", no_objects)


def test_an_optional_source_may_be_missing() -> None:
    reference = {"name": "none", "key": "k", "optional": True}
    container = {"name": "c", "env": [{"name": "X", "valueFrom": {"secretKeyRef": reference}}]}

    assert "X" not in environment.build(make_pod(), container, PLACE, "/w", no_objects)


def test_all_of_a_secret_can_be_taken_with_a_prefix() -> None:
    container = {"name": "c", "envFrom": [{"prefix": "P_", "secretRef": {"name": "s"}}]}

    def lookup(kind: Kind, name: str) -> Object | None:
        return {"data": {"k": "aGk="}} if (kind, name) == (SECRETS, "s") else None

    assert environment.build(make_pod(), container, PLACE, "/w", lookup)["P_k"] == "hi"


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("requests.cpu", None, "2"),
        ("requests.cpu", "1m", "1500"),
        ("limits.memory", None, str(2**30)),
        ("limits.memory", "1Mi", "1024"),
        ("requests.memory", None, "0"),
    ],
)
def test_an_amount_is_told_in_the_unit_asked_for(
    resource: str, divisor: str | None, value: str
) -> None:
    reference = {"resource": resource} | ({"divisor": divisor} if divisor else {})
    variable = {"name": "X", "valueFrom": {"resourceFieldRef": reference}}
    container = {"name": "c", "env": [variable], "resources": {"requests": {"cpu": "1500m"}}}

    assert environment.build(make_pod(), container, PLACE, "/w", no_objects)["X"] == value


def test_addresses_are_not_given_twice() -> None:
    addresses = Addresses()
    addresses.reserve("127.1.0.2")

    taken = [addresses.take() for _ in range(300)]

    assert len(set(taken)) == 300
    assert "127.1.0.2" not in taken
    assert taken[0] == "127.1.0.1"


def test_a_process_is_told_from_a_later_one_with_its_number() -> None:
    fields = " ".join(str(number) for number in range(3, 53))
    record = f"boot 77 (a) b) (c)) S {fields}"

    process = Process.read(record)

    assert process == Process(77, "boot", "21")
    assert Process.read("boot 77 (sh") is None
    assert not Process(1, "another boot", "1").alive()


def test_a_lost_container_counts_as_failed() -> None:
    lost = pod_status.lost(NOW)

    assert isinstance(lost, Terminated)
    assert pod_status.restarts("OnFailure", lost)
    assert not pod_status.restarts("Never", lost)

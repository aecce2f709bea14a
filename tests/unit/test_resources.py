"""What pods ask for, as the scheduler of Kubernetes counts it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from hekla.domain import resources
from hekla.domain.errors import InvalidError


def container(
    cpu: str | None = None, *, limit: str | None = None, **more: Any
) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    if cpu is not None:
        asked["requests"] = {"cpu": cpu}
    if limit is not None:
        asked["limits"] = {"cpu": limit}
    return {"name": "c", "resources": asked} | more


def sidecar(cpu: str) -> dict[str, Any]:
    return container(cpu, restartPolicy="Always")


def test_each_resource_has_its_unit_and_rounds_up() -> None:
    written = {
        "cpu": "1.0001", "memory": "1.5Ki", "ephemeral-storage": "1", "hugepages-2Mi": "4Mi",
        "pods": 110, "nvidia.com/gpu": "1", "example.com/half": "500m",
    }  # fmt: skip

    assert resources.parse_list(written) == {
        "cpu": 1001, "memory": 1536, "ephemeral-storage": 1, "hugepages-2Mi": 4 * 2**20,
        "pods": 110, "nvidia.com/gpu": 1, "example.com/half": 1,
    }  # fmt: skip


def test_amounts_are_bounded() -> None:
    assert resources.parse_amount("cpu", "100E") == resources.LARGEST
    assert resources.add({"a": resources.LARGEST}, {"a": 1}) == {"a": resources.LARGEST}


def test_every_bad_amount_is_named() -> None:
    with pytest.raises(InvalidError) as refused:
        resources.parse_list({"cpu": "much", "memory": "1Gi", "x": [], "y": None})

    assert [violation.path for violation in refused.value.violations] == ["cpu", "x", "y"]


def test_amounts_are_written_as_kubernetes_does() -> None:
    amounts = {"cpu": 1500, "memory": 3 * 2**29, "pods": 110, "hugepages-1Gi": 2**30}

    assert resources.format_list(amounts) == {
        "cpu": "1500m", "memory": "1536Mi", "pods": "110", "hugepages-1Gi": "1Gi",
    }  # fmt: skip


NAMES = st.sampled_from(["cpu", "memory", "hugepages-2Mi", "nvidia.com/gpu"])
AMOUNTS = st.dictionaries(NAMES, st.integers(0, 2**60))


@given(AMOUNTS)
def test_what_is_written_is_read_back(amounts: dict[str, int]) -> None:
    assert resources.parse_list(resources.format_list(amounts)) == amounts


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [container("1"), container("500m")]}, 1500, id="sum"),
        pytest.param({"containers": [container(limit="2")]}, 2000, id="limit for a request"),
        pytest.param(
            {"containers": [container("1", limit="2")]}, 1000, id="request over limit"
        ),
        pytest.param({"containers": [container("0", limit="2")]}, 0, id="explicit zero stays"),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("3"), container("2")],
            },
            3000,
            id="the largest init container",
        ),
        pytest.param(
            {"containers": [container("4")], "initContainers": [container("3")]},
            4000,
            id="init containers run before",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [sidecar("2")]},
            3000,
            id="a sidecar stays",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [sidecar("2"), container("5")]},
            7000,
            id="an init container beside a sidecar",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("5"), sidecar("2")]},
            5000,
            id="an init container before the sidecar",
        ),
        pytest.param(
            {"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250, id="overhead"
        ),
        pytest.param(
            {"containers": [container("1")], "resources": {"requests": {"cpu": "3"}}},
            3000,
            id="a request of the whole pod",
        ),
        pytest.param(
            {"containers": [container()], "resources": {"limits": {"cpu": "3"}}},
            3000,
            id="a limit of the whole pod",
        ),
        pytest.param(
            {"containers": [container("1")], "resources": {"limits": {"cpu": "3"}}},
            1000,
            id="a limit of the whole pod beside a request",
        ),
    ],
)
def test_a_pod_asks_for(spec: dict[str, Any], cpu: int) -> None:
    assert resources.pod_request({"spec": spec}) == {"cpu": cpu}
    assert resources.pod_request(spec) == {"cpu": cpu}


@pytest.mark.parametrize(
    "pod",
    [
        {"spec": None},
        {"spec": {}},
        {"spec": {"containers": None, "initContainers": None, "overhead": None}},
        {"spec": {"containers": [{"name": "c", "resources": None}]}},
        {"spec": {"containers": [{"name": "c", "resources": {"requests": None}}]}},
    ],
)
def test_a_pod_that_says_nothing_asks_for_nothing(pod: dict[str, Any]) -> None:
    assert resources.pod_request(pod) == {}


def test_a_bad_request_is_refused() -> None:
    with pytest.raises(InvalidError, match="cpu: must be a quantity"):
        resources.pod_request({"spec": {"containers": [container("lots")]}})


CONTAINERS = st.lists(
    st.builds(lambda cpu: container(f"{cpu}m"), st.integers(0, 4000)), min_size=1, max_size=4
)


@given(CONTAINERS, st.lists(st.tuples(st.booleans(), st.integers(0, 4000)), max_size=5))
def test_a_pod_asks_for_the_worst_moment(
    containers: list[dict[str, Any]], inits: list[tuple[bool, int]]
) -> None:
    init_containers = [
        sidecar(f"{cpu}m") if stays else container(f"{cpu}m") for stays, cpu in inits
    ]
    moments = [
        cpu + sum(other for stayed, other in inits[:index] if stayed)
        for index, (_, cpu) in enumerate(inits)
    ]
    running = resources.pod_request({"containers": containers}).get("cpu", 0)
    moments.append(running + sum(cpu for stays, cpu in inits if stays))

    asked = resources.pod_request({"containers": containers, "initContainers": init_containers})

    assert asked["cpu"] == max(moments)

"""Resource groups give pods a place to run: U209 and AD-48 to AD-59 of Volcano's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hekla.domain.errors import InvalidError
from services.webhook.limits import LimitsNow, groups_in
from services.webhook.rules.admission import Operation, admit
from services.webhook.rules.pod import Pod
from services.webhook.rules.resource_groups import read_groups
from services.webhook.rules.world import Limits
from tests.support.worlds import FixedWorld

FILE = """
resourceGroups:
- resourceGroup: management
  object: {key: namespace, value: [volcano-system]}
  schedulerName: default-scheduler
  labels: {volcano.sh/nodetype: management}
  tolerations: [{key: a, operator: Exists}]
  affinity: '{"nodeAffinity": {}}'
- resourceGroup: cpu
  object: {key: annotation, value: ["volcano.sh/resource-group: cpu"]}
  schedulerName: volcano
  labels: {volcano.sh/nodetype: cpu}
- resourceGroup: gpu
  schedulerName: volcano
  labels: {volcano.sh/nodetype: gpu}
"""
GROUPS = read_groups(FILE)
CPU, GPU = ({"volcano.sh/resource-group": name} for name in ("cpu", "gpu"))


def stored(
    groups: Any = GROUPS, namespace: str = "default", annotations: Any = None, **spec: Any
) -> Any:
    raw = {
        "metadata": {"name": "p", "namespace": namespace, "annotations": annotations or {}},
        "spec": {"containers": [], **spec},
    }
    limits = Limits(resource_groups=groups)
    return admit(Operation.CREATE, Pod(raw), None, FixedWorld(), limits).object.raw["spec"]


def test_a_group_of_namespaces_gives_all_it_has() -> None:
    assert stored(namespace="volcano-system", tolerations=[{"key": "b"}]) == {
        "containers": [],
        "nodeSelector": {"volcano.sh/nodetype": "management"},
        "affinity": {"nodeAffinity": {}},
        "tolerations": [{"key": "b"}, {"key": "a", "operator": "Exists"}],
        "schedulerName": "default-scheduler",
    }


@pytest.mark.parametrize(("annotations", "kind"), [(CPU, "cpu"), (GPU, "gpu")])
def test_a_group_is_matched_by_annotation_or_by_its_name(annotations: Any, kind: str) -> None:
    spec = stored(annotations=annotations, nodeSelector={"x": "y"})

    assert spec["nodeSelector"] == {"x": "y", "volcano.sh/nodetype": kind}
    assert spec["schedulerName"] == "volcano"


@pytest.mark.parametrize("annotations", [None, {"volcano.sh/resource-group": "other"}])
def test_other_pods_stay_as_they_are(annotations: Any) -> None:
    assert stored(annotations=annotations) == {"containers": []}


@pytest.mark.parametrize(
    "more",
    [
        {"namespace": "volcano-system"},
        {"annotations": CPU},
        {"annotations": GPU},
        {"affinity": {"podAffinity": {}}, "annotations": CPU},
        {"tolerations": [{"key": "x"}], "annotations": CPU},
        {"nodeSelector": {"x": "y"}, "annotations": CPU},
        {"schedulerName": "mine"},
    ],
)
def test_without_groups_nothing_changes(more: dict[str, Any]) -> None:
    """AD-48 to AD-59."""
    given = {
        key: value for key, value in more.items() if key not in {"namespace", "annotations"}
    }

    assert stored((), **more) == {"containers": [], **given}


def test_affinity_of_its_own_stays() -> None:
    own: dict[str, Any] = {"podAffinity": {}}

    assert stored(namespace="volcano-system", affinity=own)["affinity"] == own


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("resourceGroups: 5", "must have a list"),
        ("[]", "must have a list"),
        ("resourceGroups: [1]", "resourceGroups[0]: must be an object, is 1"),
        ("resourceGroups: [{affinity: '{'}]", "resourceGroups[0]: affinity must be JSON"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(text: str, message: str) -> None:
    with pytest.raises(InvalidError, match="resourceGroups") as raised:
        read_groups(text)
    assert message in str(raised.value)


def test_an_empty_file_has_no_groups() -> None:
    assert read_groups("# all of it is commented out\n") == ()


def test_a_file_that_changes_is_read_again_and_a_wrong_one_changes_nothing(
    tmp_path: Path,
) -> None:
    file = tmp_path / "groups.yaml"
    file.write_text("resourceGroups: [{resourceGroup: a}]")
    limits = LimitsNow(Limits(resource_groups=groups_in(file)), file)

    def names() -> list[str]:
        return [group.name for group in limits().resource_groups]

    assert names() == ["a"]
    file.write_text("resourceGroups: [{resourceGroup: b}, {resourceGroup: c}]")
    assert names() == ["b", "c"]
    file.write_text("resourceGroups: 5")
    assert names() == ["b", "c"]
    file.unlink()
    assert names() == ["b", "c"]
    fresh = tmp_path / "fresh.yaml"
    fresh.write_text("resourceGroups: []")
    fresh.replace(file)
    assert names() == []


def test_without_a_file_there_are_no_groups() -> None:
    assert LimitsNow(Limits(), None)() == Limits()
    assert groups_in(None) == ()

"""What the mirror does about one object, given both of its sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from hekla.domain.names import Key
from hekla.kube.mirror.custom import ROW_GENERATION, ROW_UID, Custom, read
from hekla.kube.mirror.deciding import (
    Adopt,
    Create,
    Delete,
    Gone,
    Insert,
    Refuse,
    Removed,
    Replace,
    Rewrite,
    Row,
    Rules,
    Show,
    Source,
    Update,
    decide,
    differs,
)
from hekla.kube.resources import JOBS

KEY: Final = Key("default", "one")
JOBLIKE: Final = Rules()
GROUPLIKE: Final = Rules(recreate=True)


def custom(uid: str = "c1", mark: str = "", generation: int = 1, **more: Any) -> Custom:
    """A custom resource; ``mark`` is the row's uid it was made from."""
    annotations = {ROW_UID: mark, ROW_GENERATION: "1"} if mark else {}
    meta: dict[str, Any] = {
        "namespace": KEY.namespace,
        "name": KEY.name,
        "uid": uid,
        "resourceVersion": "7",
        "generation": generation,
        "annotations": annotations | more.pop("annotations", {}),
        "labels": more.pop("labels", {}),
    }
    if more.pop("deleting", False):
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    raw = {"metadata": meta, "spec": {"a": 1}, "status": {"phase": "Running"}} | more
    return read(JOBS, raw)


def row(source: Source = Source.ROW, **more: Any) -> Row:
    """A row; what is not given agrees with ``custom()``."""
    known = Row(KEY, "r1", source, spec={"a": 1}, status={"phase": "Running"})
    return replace(known, **more)


FOLLOWS: Final = row(Source.CUSTOM, custom_uid="c1")
LEADS: Final = row(custom_uid="c1")


@pytest.mark.parametrize(
    ("there", "stored", "rules", "steps"),
    [
        pytest.param(None, None, JOBLIKE, [], id="nothing anywhere"),
        pytest.param(custom(), None, JOBLIKE, [Insert], id="a new custom resource"),
        pytest.param(custom(deleting=True), None, JOBLIKE, [], id="one that leaves anyway"),
        pytest.param(custom(mark="r0"), None, JOBLIKE, [Removed, Delete], id="its row is gone"),
        pytest.param(custom(mark="r0", deleting=True), None, JOBLIKE, [], id="and it leaves"),
        pytest.param(custom(), FOLLOWS, JOBLIKE, [], id="both agree"),
        pytest.param(None, FOLLOWS, JOBLIKE, [Gone], id="deleted, seen or not"),
        pytest.param(
            None, replace(FOLLOWS, deleting=True), JOBLIKE, [], id="deleted, and the row goes"
        ),
        pytest.param(custom(deleting=True), FOLLOWS, JOBLIKE, [Gone], id="being deleted"),
        pytest.param(
            custom(deleting=True), replace(FOLLOWS, deleting=True), JOBLIKE, [], id="both go"
        ),
        pytest.param(
            custom(), replace(FOLLOWS, deleting=True), JOBLIKE, [Delete], id="its time is over"
        ),
        pytest.param(custom("c2"), FOLLOWS, JOBLIKE, [Replace], id="same name, another uid"),
        pytest.param(
            custom("c2", deleting=True), FOLLOWS, JOBLIKE, [Gone], id="another one that leaves"
        ),
        pytest.param(
            custom("c2", mark="r0"),
            FOLLOWS,
            JOBLIKE,
            [Gone, Delete],
            id="another one that a forgotten row left behind",
        ),
        pytest.param(custom(generation=2), FOLLOWS, JOBLIKE, [Update], id="a new spec"),
        pytest.param(custom(labels={"x": "y"}), FOLLOWS, JOBLIKE, [Update], id="new labels"),
        pytest.param(
            custom(generation=2, status={}),
            FOLLOWS,
            JOBLIKE,
            [Update, Show],
            id="a new spec, and an old status",
        ),
        pytest.param(custom(status={"phase": "Pending"}), FOLLOWS, JOBLIKE, [Show], id="old"),
        pytest.param(None, row(), JOBLIKE, [Create], id="made when it is wanted"),
        pytest.param(None, row(wanted=False), JOBLIKE, [], id="not made before"),
        pytest.param(None, row(deleting=True), JOBLIKE, [], id="not made at the end"),
        pytest.param(None, LEADS, JOBLIKE, [Gone], id="deleting it deletes the row"),
        pytest.param(None, LEADS, GROUPLIKE, [Create], id="deleted and made again"),
        pytest.param(
            custom(mark="r1", deleting=True), LEADS, JOBLIKE, [Gone], id="somebody deletes it"
        ),
        pytest.param(
            custom(mark="r1", deleting=True), LEADS, GROUPLIKE, [], id="gone before it is made"
        ),
        pytest.param(custom(mark="r1"), LEADS, JOBLIKE, [], id="made from the row, agrees"),
        pytest.param(custom(mark="r1"), row(), JOBLIKE, [Adopt], id="made, and then a crash"),
        pytest.param(custom(), LEADS, JOBLIKE, [Rewrite], id="somebody took our mark away"),
        pytest.param(
            custom(mark="x"), LEADS, JOBLIKE, [Rewrite], id="somebody changed our mark"
        ),
        pytest.param(
            custom(mark="r1"), replace(LEADS, generation=2), JOBLIKE, [Rewrite], id="new spec"
        ),
        pytest.param(
            custom(mark="r1", spec={"a": 2}), LEADS, JOBLIKE, [Rewrite], id="edited anyhow"
        ),
        pytest.param(
            custom(mark="r1", labels={"theirs": "x"}), LEADS, JOBLIKE, [], id="their own labels"
        ),
        pytest.param(
            custom(mark="r1"), replace(LEADS, deleting=True), JOBLIKE, [Delete], id="row goes"
        ),
        pytest.param(custom("c2", mark="r0"), row(), JOBLIKE, [Delete], id="of an older row"),
        pytest.param(
            custom("c2", mark="r0"), LEADS, GROUPLIKE, [Adopt, Rewrite], id="of one before it"
        ),
        pytest.param(
            custom(mark="r1"), replace(LEADS, wanted=False), GROUPLIKE, [Delete], id="no owner"
        ),
        pytest.param(custom("c2"), row(), JOBLIKE, [Refuse], id="the name is taken"),
        pytest.param(
            custom("c2"), LEADS, JOBLIKE, [Gone, Refuse], id="gone, unseen, and taken"
        ),
        pytest.param(custom("c2"), LEADS, GROUPLIKE, [Refuse], id="it is made when it can"),
        pytest.param(custom("c2", deleting=True), row(), JOBLIKE, [], id="it will be free"),
    ],
)
def test_both_sides_are_brought_together(
    there: Custom | None, stored: Row | None, rules: Rules, steps: list[type]
) -> None:
    assert [type(step) for step in decide(there, stored, rules)] == steps


def test_a_name_that_is_taken_is_told_with_who_has_it() -> None:
    [refusal] = decide(custom("c2"), row(), Rules(door=lambda row: f"job {row.uid}"))

    assert isinstance(refusal, Refuse)
    assert refusal.reason == "NameConflict"
    assert "taken by job r1" in refusal.message


def test_where_generations_move_with_the_status_the_specs_are_compared() -> None:
    rules = Rules(behind=differs)

    assert decide(custom(generation=9), FOLLOWS, rules) == []
    assert [type(s) for s in decide(custom(spec={"a": 2}), FOLLOWS, rules)] == [Update]


def test_what_kubectl_notes_for_itself_is_no_change() -> None:
    noted = custom(annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"})

    assert decide(noted, FOLLOWS, JOBLIKE) == []

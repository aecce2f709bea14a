"""What the mirror does about kinds whose rows follow, and how calls know what they wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hekla.domain import names
from hekla.domain.errors import InvalidError
from hekla.kube.mirror.custom import Custom, carried
from hekla.kube.mirror.deciding import (
    Adopt,
    Create,
    Delete,
    Gone,
    Insert,
    Replace,
    Row,
    Rules,
    Show,
    Source,
    Update,
)
from hekla.kube.mirror.door import Call
from hekla.kube.mirror.following import follow
from tests.unit.test_mirror_deciding import custom, row

FOLLOWS = row(Source.CUSTOM, custom_uid="c1")


@pytest.mark.parametrize(
    ("there", "stored", "steps"),
    [
        pytest.param(None, None, [], id="nothing anywhere"),
        pytest.param(custom(), None, [Insert], id="a new custom resource"),
        pytest.param(custom(mark="r0"), None, [Insert], id="though made from a row once"),
        pytest.param(custom(deleting=True), None, [], id="one that leaves anyway"),
        pytest.param(None, row(), [Create], id="a row from before gets one"),
        pytest.param(None, row(deleting=True), [], id="unless it goes"),
        pytest.param(custom(mark="r1"), row(), [Adopt], id="which it follows from then on"),
        pytest.param(custom(), row(), [Adopt], id="or the one of its name"),
        pytest.param(custom(deleting=True), row(), [], id="but not one that leaves"),
        pytest.param(
            custom(mark="r1"), row(deleting=True), [Delete], id="made as the row was deleted"
        ),
        pytest.param(custom(), row(deleting=True), [], id="somebody else's, taken afterwards"),
        pytest.param(custom(), FOLLOWS, [], id="both agree"),
        pytest.param(custom(mark="r1"), FOLLOWS, [], id="whatever the mark says"),
        pytest.param(custom(generation=2), FOLLOWS, [Update], id="a new spec"),
        pytest.param(custom(status={}), FOLLOWS, [Show], id="an old status"),
        pytest.param(custom("c2", mark="r1"), FOLLOWS, [Replace], id="another of the name"),
        pytest.param(None, FOLLOWS, [Gone], id="deleted"),
        pytest.param(custom(deleting=True), FOLLOWS, [Gone], id="deleted, and still there"),
        pytest.param(custom(), replace(FOLLOWS, deleting=True), [Delete], id="the row goes"),
        pytest.param(
            None,
            replace(FOLLOWS, deleting=True),
            [Gone],
            id="a row that goes learns that it may",
        ),
        pytest.param(
            None, replace(FOLLOWS, deleting=True, custom_uid=""), [], id="and knows it then"
        ),
    ],
)
def test_rows_follow_wherever_they_come_from(
    there: Custom | None, stored: Row | None, steps: list[type]
) -> None:
    assert [type(step) for step in follow(there, stored, Rules())] == steps


def test_a_call_knows_what_it_wrote() -> None:
    call = Call.of("CreateQueue", "abc", b"one")
    wrote = custom(annotations={"mine": "x", **call.marks})

    assert call.made(wrote)
    assert not call.made(custom())
    assert not Call.of("CreateQueue", "other", b"one").made(wrote)
    with pytest.raises(InvalidError, match="request_id 'abc' was used for another CreateQueue"):
        Call.of("CreateQueue", "abc", b"two").made(wrote)
    assert carried(wrote.annotations) == {"mine": "x"}, "which rows do not have"
    assert set(call.marks) == {names.REQUEST_ID, names.REQUEST_HASH}


def test_a_call_without_an_id_is_always_new() -> None:
    call = Call.of("CreateQueue", "", b"one")

    assert call.marks == {}
    assert not call.made(custom())

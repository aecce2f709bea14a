"""Whether a Volcano is at work: leases, looked at again and again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hekla.kube.rival import VOLCANO, Held, Watched, held

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
START = 1000.0


def lease(renewed: datetime | str = NOW, *, name: str = "volcano", holder: str = "a") -> Held:
    text = renewed if isinstance(renewed, str) else renewed.isoformat().replace("+00:00", "Z")
    return Held("volcano-system", name, holder, text, timedelta(seconds=15))


def looks(*each: tuple[float, Held]) -> list[str]:
    """What every look says: ``works``, ``maybe``, or ``alone``."""
    watched = Watched()
    said = []
    for seconds, one in each:
        clock = NOW + timedelta(seconds=seconds)
        problem = watched.judge([one], at=START + seconds, clock=clock)
        said.append("alone" if problem is None else "maybe" if "may be" in problem else "works")
    return said


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        pytest.param(
            [(0, lease()), (14, lease()), (15, lease())],
            ["maybe", "maybe", "alone"],
            id="one that nobody renews is watched for as long as it lasts",
        ),
        pytest.param(
            [(0, lease()), (2, lease(later(2))), (16, lease(later(2))), (17, lease(later(2)))],
            ["maybe", "works", "works", "alone"],
            id="one that was renewed counts until it was not for as long",
        ),
        pytest.param(
            [(0, lease(later(-600))), (5, lease(later(-595)))],
            ["maybe", "works"],
            id="a clock that is behind hides nobody",
        ),
        pytest.param(
            [(0, lease(later(600))), (15, lease(later(600)))],
            ["maybe", "alone"],
            id="a clock that was ahead holds nobody up for longer",
        ),
        pytest.param(
            [(0, lease(later(-4000)))], ["alone"], id="what is long past is not watched"
        ),
        pytest.param(
            [(0, lease(later(-4000))), (900, lease(later(900))), (916, lease(later(900)))],
            ["alone", "works", "alone"],
            id="one that was left over is taken up again",
        ),
        pytest.param(
            [(0, lease()), (15, lease()), (99, lease(later(99)))],
            ["maybe", "alone", "works"],
            id="one who was gone comes back",
        ),
        pytest.param(
            [(0, lease()), (5, lease(holder="b"))],
            ["maybe", "works"],
            id="somebody else took it",
        ),
        pytest.param([(0, lease(""))], ["alone"], id="one that was never renewed"),
        pytest.param([(0, lease("soon"))], ["maybe"], id="a time that cannot be read"),
    ],
)
def test_a_volcano_is_at_work_while_its_lease_is_renewed(
    each: list[tuple[float, Held]], expected: list[str]
) -> None:
    assert looks(*each) == expected


def test_a_clock_that_is_set_back_makes_no_old_lease_a_new_one() -> None:
    watched, old = Watched(), lease(later(-4000))

    said = [watched.judge([old], at=START, clock=later(seconds)) for seconds in (0, -3600)]

    assert said == [None, None]


def test_of_several_the_one_that_is_renewed_is_named() -> None:
    watched = Watched()
    old, new = lease(name="vc-controller-manager"), lease()
    watched.judge([old, new], at=START, clock=NOW)

    problem = watched.judge([old, lease(later(1), holder="pod-1")], at=START + 1, clock=NOW)

    assert problem == (
        "a Volcano is at work: the lease volcano-system/volcano of pod-1 is renewed;"
        " it has to stop first"
    )
    assert watched.judge([], at=START + 1, clock=NOW) is None


@pytest.mark.parametrize(
    ("name", "spec", "expected"),
    [
        ("volcano", {"holderIdentity": "a", "leaseDurationSeconds": 7}, 7),
        ("vc-controller-manager", {"holderIdentity": "a"}, 15),
        ("volcano", {"holderIdentity": "a", "leaseDurationSeconds": 10**9}, 120),
        ("volcano", {"holderIdentity": "a", "leaseDurationSeconds": "7"}, 15),
        ("volcano", {"holderIdentity": ""}, None),
        ("volcano", None, None),
        ("somebody-else", {"holderIdentity": "a"}, None),
    ],
)
def test_leases_are_read_by_name_and_holder(
    name: str, spec: dict[str, Any] | None, expected: int | None
) -> None:
    found = held({"metadata": {"namespace": "n", "name": name}, "spec": spec}, VOLCANO)

    assert (found and found.lasts.total_seconds()) == expected

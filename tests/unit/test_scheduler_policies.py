"""The policy file, read again when it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hekla.domain.errors import InvalidError
from services.scheduler import policies
from services.scheduler.policies import Policies

GANG = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'
MORE = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'


def names(found: Policies) -> list[str]:
    return [action.name for action in found.framework.actions]


@pytest.fixture(autouse=True)
def _look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "LOOK", 0.0)


def test_without_a_file_the_default_is_in_force() -> None:
    found = Policies(None, lambda: None)

    assert names(found) == ["enqueue", "allocate", "backfill"]
    assert not found.look()


def test_a_file_that_changes_is_in_force_from_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text(GANG)
    found = Policies(path, lambda: None)
    assert names(found) == ["allocate"]
    assert not found.look()

    path.write_text(MORE)

    assert found.look()
    assert names(found) == ["enqueue", "allocate"]


@pytest.mark.parametrize("text", ["actions: [", "actions: dance\ntiers: []\n", None])
def test_a_file_that_makes_no_sense_leaves_the_old_policy_in_force(
    tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text(GANG)
    found = Policies(path, lambda: None)

    if text is None:
        path.unlink()
    else:
        path.write_text(text)

    assert not found.look()
    assert names(found) == ["allocate"]
    path.write_text(MORE)
    assert found.look(), "it recovers by itself"


def test_a_file_that_makes_no_sense_at_the_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="cannot read"):
        Policies(tmp_path / "absent", lambda: None)


def test_what_every_node_provides_stays_provided_when_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text(GANG)
    found = Policies(path, lambda: None, provided=["volumeClaims"])
    assert "volumeClaims" in found.framework.provides

    path.write_text(MORE)

    assert found.look()
    assert "volumeClaims" in found.framework.provides
    assert "volumeClaims" not in Policies(path, lambda: None).framework.provides


def test_an_action_is_a_sign_of_life() -> None:
    moves: list[int] = []
    found = Policies(None, lambda: moves.append(1))

    class Session:
        class cluster:  # noqa: N801
            waiting: dict[str, object] = {}  # noqa: RUF012
            queues: list[object] = []  # noqa: RUF012

    found.framework.actions[0].run(Session)

    assert moves == [1]

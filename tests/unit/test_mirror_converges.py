"""Whatever happens on either side, whenever the mirror dies: both agree at the end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hypothesis import given, settings, strategies as st

from hekla.domain.names import Key
from hekla.kube.mirror import bodies, merging
from hekla.kube.mirror.custom import ROW_UID, Custom, read
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
    Step,
    Update,
    decide,
)
from hekla.kube.resources import JOBS

KEY: Final = Key("default", "one")
MOST_ROUNDS: Final = 30


@dataclass
class World:
    """One name: what the cluster and the store have of it, and the mirror between them."""

    rules: Rules
    custom: dict[str, Any] | None = None
    row: Row | None = None
    spent: set[str] = field(default_factory=set)
    conflict: str = ""
    """The uid of the custom resource that was told why it is not taken."""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    # ---- what others do

    def user_creates(self) -> None:
        if self.custom is None:
            self._make({"spec": {"n": next(self.numbers)}, "metadata": {}})

    def user_edits(self) -> None:
        if self.custom is not None and not self._custom().mark and not self._custom().deleting:
            self._change(spec={"n": next(self.numbers)}, generation=1)

    def user_deletes(self) -> None:
        self.custom = None

    def user_deletes_slowly(self) -> None:
        if self.custom is not None:
            self._change(meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    def collector_ends(self) -> None:
        if self.custom is not None and self._custom().deleting:
            self.custom = None

    def user_takes_the_mark_away(self) -> None:
        if self.custom is not None:
            self._change(meta={"annotations": {}})

    def user_changes_the_mark(self) -> None:
        if self.custom is not None:
            self._change(meta={"annotations": {ROW_UID: "nobody's"}})

    def call_creates(self) -> None:
        if self.row is None:
            uid = f"r{next(self.numbers)}"
            self.row = Row(KEY, uid, Source.ROW, wanted=self.rules.recreate, spec={"n": 0})

    def call_changes(self) -> None:
        if self.row is not None and self.row.source is Source.ROW:
            spec = {"n": next(self.numbers)}
            self.row = replace(self.row, spec=spec, generation=self.row.generation + 1)

    def call_deletes(self) -> None:
        if self.row is not None:
            self.row = replace(self.row, deleting=True)

    def pass_starts(self) -> None:
        """The job starts: its custom resource is made, and perhaps that is not noted."""
        row = self.row
        if row is None or row.source is not Source.ROW or row.deleting or row.custom_uid:
            return
        if self.custom is None and not self.rules.recreate:
            self._make(bodies.creation(JOBS, row, status_apart=True))

    def pass_moves(self) -> None:
        if self.row is not None:
            self.row = replace(self.row, status={"phase": f"p{next(self.numbers)}"})

    def pass_retires(self) -> None:
        if self.row is not None and self.row.deleting:
            self.spent.add(self.row.uid)
            self.row = None

    # ---- the mirror

    def mirror(self, steps_done: int | None = None) -> bool:
        """One look; ``steps_done`` has it die after so many steps. Whether it did anything."""
        steps = self._steps()
        for step in steps[:steps_done]:
            if isinstance(step, Removed) and not self._is_past(step.custom):
                self.conflict = step.custom.uid
                return False
            self._take(step)
        return any(not isinstance(step, Refuse) for step in steps)

    def _is_past(self, custom: Custom) -> bool:
        """Whether what a custom resource was made from was removed, as the store knows."""
        return self.rules.recreate or custom.mark in self.spent

    def _steps(self) -> Sequence[Step]:
        custom = self._custom() if self.custom is not None else None
        return decide(custom, self.row, self.rules)

    def _take(self, step: Step) -> None:  # noqa: PLR0912 - one branch a step
        match step:
            case Insert(custom):
                if custom.uid in self.spent:
                    self.custom = None
                else:
                    self._insert(custom)
            case Replace(custom, row):
                self.spent.add(row.uid)
                self._insert(custom)
            case Update(custom, row):
                changed = replace(row, spec=custom.spec, generation=custom.generation)
                self.row = replace(changed, annotations=dict(custom.annotations))
            case Adopt(custom, row):
                self.row = replace(row, custom_uid=custom.uid)
            case Gone(row):
                self.row = replace(row, deleting=True)
                if self.rules.recreate:
                    self.row = None
            case Create(row):
                self._make(bodies.creation(JOBS, row, status_apart=True))
            case Rewrite(custom, row):
                self._apply(bodies.rewrite(JOBS, custom, row).body)
            case Delete():
                self.custom = None
            case Show(custom, row):
                patch = bodies.show(JOBS, custom, row.status, status_apart=True)
                assert patch is not None
                self._apply({"status": patch.body["status"]})
            case Refuse(custom):
                self.conflict = custom.uid

    def _insert(self, custom: Custom) -> None:
        self.row = Row(
            KEY,
            custom.uid,
            Source.CUSTOM,
            custom_uid=custom.uid,
            generation=custom.generation,
            spec=custom.spec,
            annotations=dict(custom.annotations),
            status={"phase": "new"},
        )

    # ---- the cluster

    def _custom(self) -> Custom:
        assert self.custom is not None
        return read(JOBS, self.custom)

    def _make(self, body: dict[str, Any]) -> None:
        number = next(self.numbers)
        meta = {
            **body.get("metadata", {}),
            "name": KEY.name,
            "namespace": KEY.namespace,
            "uid": f"c{number}",
            "generation": 1,
        }
        self.custom = {**body, "metadata": meta}
        self.custom.pop("status", None)
        self._change()

    def _change(
        self,
        spec: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
        generation: int = 0,
    ) -> None:
        assert self.custom is not None
        known = self.custom["metadata"]
        changed = {
            **known,
            **(meta or {}),
            "resourceVersion": str(next(self.numbers) + 1),
            "generation": known["generation"] + generation,
        }
        self.custom = {**self.custom, "metadata": changed}
        if spec is not None:
            self.custom["spec"] = spec

    def _apply(self, patch: dict[str, Any]) -> None:
        assert self.custom is not None
        before = self.custom
        meta = {**patch.get("metadata", {})}
        meta.pop("uid", None)
        meta.pop("resourceVersion", None)
        wanted = {**patch, "metadata": meta}
        self.custom = _merged(before, wanted)
        moved = not merging.same(before.get("spec"), self.custom.get("spec"))
        self._change(generation=1 if moved else 0)


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


EVENTS: Final[Sequence[Callable[[World], object]]] = (
    World.user_creates,
    World.user_edits,
    World.user_deletes,
    World.user_deletes_slowly,
    World.collector_ends,
    World.user_takes_the_mark_away,
    World.user_changes_the_mark,
    World.call_creates,
    World.call_changes,
    World.call_deletes,
    World.pass_starts,
    World.pass_moves,
    World.pass_retires,
    World.mirror,
    lambda world: world.mirror(0),
    lambda world: world.mirror(1),
)


def settle(world: World) -> None:
    """Everybody does what is theirs to do, until nothing is left to do."""
    for _ in range(MOST_ROUNDS):
        world.collector_ends()
        world.pass_retires()
        if not world.mirror():
            return
    raise AssertionError(f"no end: {world._steps()}")


def agree(world: World) -> None:
    """What must hold of both sides once they are quiet."""
    row, custom = world.row, world._custom() if world.custom is not None else None
    if row is None:
        told = custom is None or world.conflict == custom.uid
        assert told, "somebody's custom resource was not taken"
        return
    assert not row.deleting
    if row.source is Source.CUSTOM:
        assert custom is not None
        assert (custom.uid, custom.generation) == (row.uid, row.generation)
    elif custom is None:
        assert not row.wanted, "it wanted one"
        assert world.rules.recreate or not row.custom_uid
        return
    elif custom.mark != row.uid:
        assert world.conflict == custom.uid, "a name is taken and nobody was told"
        return
    else:
        assert row.custom_uid == custom.uid
    assert custom.spec == row.spec
    assert merging.patch(custom.status, row.status) is None or not row.status


@settings(max_examples=300)
@given(
    st.booleans(),
    st.lists(st.sampled_from(range(len(EVENTS))), max_size=25),
)
def test_both_sides_agree_at_the_end(
    recreate: bool,  # noqa: FBT001 - drawn
    happened: list[int],
) -> None:
    world = World(Rules(recreate=recreate))
    for number in happened:
        EVENTS[number](world)
    settle(world)

    agree(world)

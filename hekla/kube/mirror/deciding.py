"""What is done about one object, given its custom resource and its row. Pure.

One side is the source of an object's spec; the other follows. The row is always the source of
the status. The table, with C for a custom resource that is there and c for one on its way out:

| custom resource | row | step |
| --- | --- | --- |
| C, of nobody's row | none | ``Insert`` |
| C, made from a row | none | ``Removed``, ``Delete``: the row was removed |
| none, c | follows it (or shares its name) | ``Gone``: the row goes too |
| C | follows it, wants to go | ``Delete`` |
| C | follows it | ``Update`` if it changed |
| C | follows another of the name | ``Replace``: the old row goes, a new one comes |
| none | the source, wanted, had none | ``Create`` |
| none, c | the source, had this one | ``Gone``, or (``recreate``) ``Create`` once it is gone |
| C, made from the row | the source | ``Adopt`` if the row does not know it, ``Rewrite`` |
| C, made from another row | the source | ``Delete``, or (``recreate``) ``Rewrite`` |
| C, somebody else's | the source | ``Refuse``: the name is taken; ``Gone`` if it had another |

Beside what it says, the row's status is shown (``Show``) wherever both are there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

from hekla.domain.names import Key
from hekla.kube.mirror import merging
from hekla.kube.mirror.custom import ROW_GENERATION, ROW_UID, Custom, carried

NAME_CONFLICT: Final = "NameConflict"


class Source(Enum):
    """Which side an object's spec comes from."""

    CUSTOM = auto()
    ROW = auto()


@dataclass(frozen=True, slots=True)
class Row:
    """What the mirror wants to know of a row."""

    key: Key
    uid: str
    source: Source
    custom_uid: str = ""
    """The uid of its custom resource, if it is known to have one."""
    generation: int = 1
    """Where the source is the custom resource: that one's, as the row has it."""
    deleting: bool = False
    """Whether it wants to go."""
    wanted: bool = True
    """Where the row is the source: whether it shall have a custom resource by now."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner: Mapping[str, Any] | None = None
    """The owner reference of its custom resource; to one that is there, or Kubernetes deletes
    it."""
    spec: Mapping[str, Any] = field(default_factory=dict, repr=False)
    status: Mapping[str, Any] = field(default_factory=dict, repr=False)


def moved(custom: Custom, row: Row) -> bool:
    """Whether a row that follows a custom resource is behind it.

    For kinds whose generation moves with the spec alone: those that have a status apart.
    """
    return (
        custom.generation != row.generation
        or dict(custom.labels) != dict(row.labels)
        or carried(custom.annotations) != dict(row.annotations)
    )


def differs(custom: Custom, row: Row) -> bool:
    """As :func:`moved`, for kinds whose generation moves with the status too."""
    return not (
        merging.says(custom.spec, row.spec)
        and dict(custom.labels) == dict(row.labels)
        and carried(custom.annotations) == dict(row.annotations)
    )


@dataclass(frozen=True, slots=True)
class Rules:
    """What differs from kind to kind."""

    recreate: bool = False
    """Whether a custom resource that is made from a row and was deleted is made again; else
    its row goes with it."""
    behind: Callable[[Custom, Row], bool] = moved
    """Whether a row that follows a custom resource is behind it."""
    shows: bool = True
    """Whether the kind has a status."""
    door: Callable[[Row], str] = lambda row: f"an object with the uid {row.uid}"
    """What holds a name that a custom resource wants, for people."""


@dataclass(frozen=True, slots=True)
class Insert:
    """Store a custom resource that is new."""

    custom: Custom


@dataclass(frozen=True, slots=True)
class Replace:
    """Another custom resource of the name: retire the old row and store the new, at once."""

    custom: Custom
    row: Row


@dataclass(frozen=True, slots=True)
class Update:
    """Bring a row up to its custom resource."""

    custom: Custom
    row: Row


@dataclass(frozen=True, slots=True)
class Adopt:
    """Note which custom resource a row has."""

    custom: Custom
    row: Row


@dataclass(frozen=True, slots=True)
class Gone:
    """The custom resource of a row was deleted, or is being deleted (then it is given)."""

    row: Row
    custom: Custom | None = None
    orphans: bool = False
    """Whether what it owns is to stay."""
    unseen: bool = False
    """Whether nobody here saw how it went: what it owned may tell."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Make sure that the row a custom resource was made from was removed, and was not lost."""

    custom: Custom


@dataclass(frozen=True, slots=True)
class Create:
    """Make the custom resource of a row."""

    row: Row


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Bring a custom resource up to its row."""

    custom: Custom
    row: Row


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a custom resource that no row stands behind any more."""

    custom: Custom


@dataclass(frozen=True, slots=True)
class Show:
    """Write a status."""

    custom: Custom
    row: Row


@dataclass(frozen=True, slots=True)
class Refuse:
    """Say on a custom resource why it is not taken."""

    custom: Custom
    reason: str
    message: str


RowStep = Insert | Replace | Update | Adopt | Gone | Removed
"""What a service does, in its store."""
Step = RowStep | Create | Rewrite | Delete | Show | Refuse

Decide = Callable[[Custom | None, Row | None, Rules], Sequence[Step]]


def decide(custom: Custom | None, row: Row | None, rules: Rules) -> Sequence[Step]:
    """The steps that bring both sides together, in order."""
    if custom is None:
        return [] if row is None else _without_custom(row, rules)
    if row is None:
        return _without_row(custom)
    if row.source is Source.CUSTOM:
        return _following(custom, row, rules)
    return _leading(custom, row, rules)


def _without_custom(row: Row, rules: Rules) -> Sequence[Step]:
    if row.deleting:
        return []
    if row.source is Source.CUSTOM or (row.custom_uid and not rules.recreate):
        return [Gone(row)]
    return [Create(row)] if row.wanted else []


def _without_row(custom: Custom) -> Sequence[Step]:
    if custom.deleting:
        return []
    return [Removed(custom), Delete(custom)] if custom.mark else [Insert(custom)]


def _following(custom: Custom, row: Row, rules: Rules) -> Sequence[Step]:
    """The custom resource is the source."""
    if custom.uid != row.custom_uid:
        if custom.mark:  # made from yet another row, which is gone
            return [Gone(row), *([] if custom.deleting else [Delete(custom)])]
        return [Gone(row)] if custom.deleting else [Replace(custom, row)]
    steps: list[Step] = []
    if custom.deleting:
        if not row.deleting:
            steps.append(Gone(row, custom))
    elif row.deleting:
        return [Delete(custom)]
    elif rules.behind(custom, row):
        steps.append(Update(custom, row))
    return [*steps, *_show(custom, row, rules)]


def _leading(custom: Custom, row: Row, rules: Rules) -> Sequence[Step]:
    """The row is the source."""
    # Whatever its mark says by now: somebody may have changed that.
    ours = row.uid == custom.mark or row.custom_uid == custom.uid
    if custom.deleting:
        goes = ours and not rules.recreate and not row.deleting
        return [Gone(row, custom)] if goes else []
    if not ours and not custom.mark:
        message = f"the name is taken by {rules.door(row)}; this one waits until it is free"
        refusal = Refuse(custom, NAME_CONFLICT, message)
        # One that the row had is gone, or another could not have the name.
        goes = bool(row.custom_uid) and not rules.recreate and not row.deleting
        return [Gone(row), refusal] if goes else [refusal]
    if not (ours or rules.recreate) or row.deleting or (rules.recreate and not row.wanted):
        return [Delete(custom)]
    steps: list[Step] = []
    if row.custom_uid != custom.uid:
        steps.append(Adopt(custom, row))
    if _is_behind(custom, row):
        steps.append(Rewrite(custom, row))
    return [*steps, *_show(custom, row, rules)]


def _is_behind(custom: Custom, row: Row) -> bool:
    """Whether a custom resource is not what its row says."""
    return not (
        merging.holds(custom.annotations, marks(row))
        and merging.holds(custom.labels, row.labels)
        and merging.holds(custom.annotations, row.annotations)
        and merging.says(custom.spec, row.spec)
    )


def marks(row: Row) -> dict[str, str]:
    """The annotations that tell of which row a custom resource is made."""
    return {ROW_UID: row.uid, ROW_GENERATION: str(row.generation)}


def _show(custom: Custom, row: Row, rules: Rules) -> Sequence[Step]:
    if not rules.shows or not row.status:
        return []
    return [] if merging.patch(custom.status, row.status) is None else [Show(custom, row)]

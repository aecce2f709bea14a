"""Places a gang's minimum: all of it, or nothing.

Which pods form the minimum is settled before; only the order in which they are placed may
change. Two orders are tried, each class after the other: as the tasks come, and the
largest first. Where both fail, ``search`` looks for any arrangement there is.
"""

from __future__ import annotations

from typing import NamedTuple

from services.scheduler.core import search
from services.scheduler.core.classes import PodClass
from services.scheduler.core.groups import GroupState, PodState, Refusal, by_key
from services.scheduler.core.queues import QueueState
from services.scheduler.core.session import Session, plus
from services.scheduler.framework import share


class Part(NamedTuple):
    """The pods of one class in a gang's minimum, the first to place first."""

    klass: PodClass
    states: list[PodState]


def place_minimum(session: Session, queue: QueueState, group: GroupState) -> bool:
    """Place the pods without which the group is not ready.

    Returns:
        Whether they all were; if not, nothing was, and why is noted.
    """
    parts = _parts(session, group)
    if not parts:
        text = "some of its pods must not be placed yet"
        session.refuse(group, Refusal("SchedulingGated", text))
        return False
    refusal = _over_quota(session, queue, parts)
    if refusal is None:
        refusal = _place(session, group, parts)
    if refusal is not None:
        session.refuse(group, refusal)
    return refusal is None


def _parts(session: Session, group: GroupState) -> list[Part]:
    by_class: dict[PodClass, list[PodState]] = {}
    for state in session.framework.job_minimum(group):
        by_class.setdefault(state.klass, []).append(state)
    parts = [Part(klass, by_key(states)) for klass, states in by_class.items()]
    order = session.framework.task_order
    return sorted(parts, key=lambda part: (order(part.klass), part.states[0].key))


def _over_quota(session: Session, queue: QueueState, parts: list[Part]) -> Refusal | None:
    use = queue.allocated
    for klass, states in parts:
        if session.queue_takes(queue, klass, len(states), use) < len(states):
            return session.no_quota(queue, [(it.klass, len(it.states)) for it in parts])
        use = plus(use, klass, len(states))
    return None


def _place(session: Session, group: GroupState, parts: list[Part]) -> Refusal | None:
    transaction = session.transaction
    transaction.lift(group.holds.values())
    mark = transaction.mark()
    refusal = _cannot(session, group, parts)
    if refusal is None:
        refusal = _try(session, group, parts)
        by_size = sorted(parts, key=lambda part: -_size(session, part.klass))
        if refusal is not None and by_size != parts:
            transaction.undo(mark)
            refusal = _try(session, group, by_size)
        if refusal is not None:
            transaction.undo(mark)
            refusal = _search(session, group, parts, refusal)
    if refusal is not None:
        transaction.undo(0)
    return refusal


def _cannot(session: Session, group: GroupState, parts: list[Part]) -> Refusal | None:
    """Why no placement exists, where one class alone shows it."""
    found = 0
    short: Part | None = None
    for part in parts:
        copies = min(session.placer.copies(part.klass), len(part.states))
        found += copies
        if copies < len(part.states) and short is None:
            short = part
            room = copies
    if short is None:
        return None
    refusal = session.no_room(group, short.klass)
    if room:
        text = f"room for {room} of {len(short.states)} such pods; {refusal.message}"
        refusal = refusal._replace(message=text)
    return refusal._replace(schedulable=found)


def _try(session: Session, group: GroupState, order: list[Part]) -> Refusal | None:
    rows = []
    for klass, states in order:
        rows.append(session.placer.place(klass, len(states)))
        if len(rows[-1]) < len(states):
            return session.no_room(group, klass)._replace(
                pod=states[len(rows[-1])].pod.name,
                schedulable=sum(map(len, rows)),
                proven=False,
            )
    _commit(session, group, order, rows)
    return None


def _search(
    session: Session, group: GroupState, parts: list[Part], refusal: Refusal
) -> Refusal | None:
    demand = [(part.klass, len(part.states)) for part in parts]
    answer = search.arrange(session.placer, demand)
    if isinstance(answer, search.Found):
        _commit(session, group, parts, answer.rows)
        return None
    if isinstance(answer, search.Impossible):
        text = f"its pods fit one by one, but not all of them together; {refusal.message}"
        return refusal._replace(message=text, proven=True)
    tried = f" within {answer.steps} steps" if answer.steps else ", too large to search"
    text = f"no placement found{tried}; {refusal.message}"
    return refusal._replace(message=text)


def _commit(
    session: Session, group: GroupState, parts: list[Part], rows: list[list[int]]
) -> None:
    for hold in group.holds.values():
        # Lifted for the attempt; given back here, so that letting go counts once.
        session.cluster.occupancy.count_hold(hold, 1)
    session.cluster.release(group)
    session.transaction.keep()
    for part, its_rows in zip(parts, rows, strict=True):
        session.commit(group, part.states, its_rows)


def _size(session: Session, klass: PodClass) -> int:
    total = session.cluster.nodes.total
    return share(plus([0] * len(total), klass, 1), total)

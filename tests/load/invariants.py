"""What must hold over the whole history of a run (DESIGN section 5, by its numbers).

Pure: takes what Postgres remembers, what clients were answered and what a watcher saw.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tests.load.clients import Sent
from tests.load.history import AttemptPast, History
from tests.load.watcher import Views
from tools.draw_states import reached

CHECKED: Final = ("I1", "I2", "I4", "I5", "I6", "I7", "I8")
NEVER: Final = float("inf")


def broken(history: History, sent: Sequence[Sent], views: Views) -> list[str]:
    """Every violation, each a sentence that begins with the invariant's number."""
    return [
        *gangs(history),
        *rooms(history),
        *one_life(history.attempts),
        *final_success(history.attempts),
        *along_the_table(history, views),
        *answered(history, sent),
        *watched(history, views),
    ]


def gangs(history: History) -> Iterator[str]:
    """I1: a group of which any pod is bound has its minimum bound."""
    least = {job.uid: job.min_available for job in history.jobs}
    job_of = {it.group: it.job for it in history.attempts if it.group}
    bound = Counter(bind.group for bind in history.binds if bind.state != "failed")
    for group, pods in bound.items():
        job = job_of.get(group)
        if job is None:
            yield f"I1: {pods} pods are bound for group {group}, of no job that is known"
        elif pods < least.get(job, 0):
            yield f"I1: group {group} has {pods} pods bound, of {least[job]} that it needs"


def rooms(history: History) -> Iterator[str]:
    """I2: at no time had a node more on it than it has."""
    ends = {it.pod: it.ended for it in history.attempts if it.pod}
    moves: dict[str, list[tuple[float, int, Mapping[str, int]]]] = defaultdict(list)
    for bind in history.binds:
        if bind.state == "failed" or bind.node not in history.nodes:
            continue
        ended = ends.get(bind.pod)
        pod: Mapping[str, int] = {**bind.request, "pods": 1}
        moves[bind.node].append((bind.at, 1, pod))
        if ended is not None:
            moves[bind.node].append((max(ended, bind.at), -1, pod))
    for node, steps in moves.items():
        used: Counter[str] = Counter()
        # What ended at a moment is gone before what came then.
        for at, by, pod in sorted(steps, key=lambda step: step[:2]):
            for name, amount in pod.items():
                used[name] += by * amount
                have = history.nodes[node].get(name, 0)
                if by > 0 and used[name] > have:
                    yield f"I2: {node} had {used[name]} {name} in use of {have} at {at:.3f}"
                    return


def one_life(attempts: Iterable[AttemptPast]) -> Iterator[str]:
    """I4: at most one live pod of a job's index at a time."""
    for key, lives in _by_index(attempts).items():
        for before, after in pairwise(lives):
            if not before.outcome or (
                before.ended is not None and before.ended > after.planned
            ):
                yield f"I4: {_named(key)} had the pods {before.pod} and {after.pod} at a time"


def final_success(attempts: Iterable[AttemptPast]) -> Iterator[str]:
    """I5: what succeeded is not run again within its run."""
    for key, lives in _by_index(attempts).items():
        for before, after in pairwise(lives):
            again = after.run == before.run or not before.superseded
            if before.outcome == "Succeeded" and again:
                yield f"I5: {_named(key)} succeeded as {before.pod}, then ran as {after.pod}"


def along_the_table(history: History, views: Views) -> Iterator[str]:
    """I6: phases move only along the table; a watcher sees them in that order."""
    arrows = {
        (str(before), str(after)) for (before, _), nexts in reached().items() for after in nexts
    }
    past = {job.uid: job for job in history.jobs}
    for job in history.jobs:
        if job.phases[0] != "Pending":
            yield f"I6: job {job.name} began as {job.phases[0]}"
        for step in pairwise(job.phases):
            if step not in arrows:
                yield f"I6: job {job.name} went from {step[0]} to {step[1]}"
    for uid, seen in views.jobs.items():
        known = list(past[uid].phases) if uid in past else []
        order = [known.index(phase) for phase in seen.phases if phase in known]
        if order != sorted(order) or len(order) < len(seen.phases):
            shown = ", ".join(seen.phases)
            yield f"I6: job {seen.name} was seen as {shown}, and went {', '.join(known)}"


def answered(history: History, sent: Sequence[Sent]) -> Iterator[str]:
    """I7: what was answered is there, once, and a repeated request did nothing more."""
    uids = Counter(job.uid for job in history.jobs)
    names = Counter(job.name for job in history.jobs)
    for one in sent:
        if one.uid and uids[one.uid] != 1:
            yield f"I7: job {one.number} was answered as {one.uid}: {uids[one.uid]} such exist"
        if one.repeated_as not in {None, one.uid}:
            yield f"I7: job {one.number} was {one.uid}, and {one.repeated_as} when asked again"
    for name, times in names.items():
        if times > 1:
            yield f"I7: there were {times} jobs {name}"
    most = sum(1 for one in sent if one.uid or one.error)
    if len(history.jobs) > most:
        yield f"I7: {most} jobs were submitted, and {len(history.jobs)} came to be"


def watched(history: History, views: Views) -> Iterator[str]:
    """I8: per object a watcher's versions only grow, and the last one and the delete come."""
    for seen in (*views.jobs.values(), *views.groups.values()):
        # A stream that was opened anew may tell of a version again, never of an older one.
        worse = [
            step
            for step in seen.backwards
            if step[1] < step[0] or not (views.reopened or seen.deleted)
        ]
        if worse:
            yield f"I8: {seen.name} went from version {worse[0][0]} to {worse[0][1]}"
    for job in history.jobs:
        view = views.jobs.get(job.uid)
        if view is None:
            yield f"I8: job {job.name} was never seen"
        elif job.removed and view.deleted is None:
            yield f"I8: the removal of job {job.name} was never seen"
        elif not job.removed and view.version != job.version:
            yield f"I8: job {job.name} has version {job.version}, the last seen {view.version}"


def _by_index(
    attempts: Iterable[AttemptPast],
) -> dict[tuple[str, str, int], list[AttemptPast]]:
    lives: dict[tuple[str, str, int], list[AttemptPast]] = defaultdict(list)
    for attempt in sorted(attempts, key=lambda it: it.planned):
        lives[attempt.job, attempt.task, attempt.index].append(attempt)
    return lives


def _named(key: tuple[str, str, int]) -> str:
    return f"{key[1]}-{key[2]} of job {key[0]}"

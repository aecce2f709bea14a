"""Evictions: deletes of pods that disruption budgets may refuse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from hekla.domain import selector
from hekla.local.kinds import errors
from hekla.local.kinds.registry import DISRUPTION_BUDGETS, PODS, Object
from hekla.local.rules import budgets
from hekla.local.rules.budgets import Budget
from hekla.local.rules.pods import FINISHED, with_condition
from hekla.local.storage.memory import Entry, Storage
from hekla.local.verbs.deletions import Deletion
from hekla.local.verbs.objects import Objects
from hekla.local.verbs.steps import CREATE, Step, Writing

RETRY_SECONDS: Final = 10


def evicting(
    storage: Storage,
    objects: Objects,
    address: tuple[str, str],
    eviction: Object,
    how: Deletion,
) -> Writing[None]:
    """Delete a pod, in steps, if the budgets that are about it allow.

    Raises:
        ApiError: they do not (429), there are several (500), or there is no such pod.
    """
    namespace, name = address
    step = Step(
        mutating=True,
        operation=CREATE,
        kind=PODS,
        namespace=namespace,
        name=name,
        subresource="eviction",
        value=eviction,
        old=None,
        dry_run=how.dry_run,
    )
    changed = yield step
    yield step._replace(mutating=False, value=changed)
    entry = storage.latest(PODS, namespace, name)
    if entry is None:
        raise errors.not_found(PODS, name)
    pod = entry.object()
    # Who is not there yet, or no more, disrupts nobody.
    if not entry.deleting and budgets.phase(pod) not in {*FINISHED, "Pending", ""}:
        _ask(list(_about(storage, entry)), name, ready=budgets.ready(pod))
    if not how.dry_run and not entry.deleting:
        conditions = with_condition(
            pod["status"].get("conditions", []),
            "DisruptionTarget",
            value=True,
            now=objects.now(),
            reason="EvictionByEvictionAPI",
        )
        conditions[-1]["message"] = "Eviction API: evicting"
        status = {**pod["status"], "conditions": conditions}
        objects.write_status(PODS, namespace, name, uid=entry.uid, status=status)
    objects.delete(PODS, namespace, name, replace(how, uid=how.uid or entry.uid))


def _ask(found: Sequence[Budget], name: str, *, ready: bool) -> None:
    if len(found) > 1:
        raise errors.internal(
            f"pod {name} has more than one PodDisruptionBudget, "
            "which the eviction subresource does not support"
        )
    for each in found:
        # One that is not ready may go as long as the others suffice.
        if each.allowed < 1 and (ready or each.healthy < each.desired or not each.expected):
            raise errors.disrupted(
                "Cannot evict pod as it would violate the pod's disruption budget.",
                f"The disruption budget {each.name} needs {each.desired} healthy pods "
                f"and has {each.healthy} currently",
                RETRY_SECONDS,
            )


def _about(storage: Storage, pod: Entry) -> Iterable[Budget]:
    for entry in storage.select(DISRUPTION_BUDGETS, pod.namespace):
        spec = entry.object()["spec"]
        if spec.get("selector") is None:
            continue  # it is about nobody, unlike an empty one
        wanted = selector.from_object(spec["selector"])
        if wanted.matches(pod.labels):
            pods = [
                latest.object()
                for each in storage.select(PODS, pod.namespace)
                if wanted.matches(each.labels)
                and (latest := storage.latest(PODS, each.namespace, each.name)) is not None
            ]
            yield budgets.budget(entry.name, spec, pods)

"""A patch merged into a template's spec.

What a patch does not name stays. Tasks are merged by name and volumes by where they are
mounted; what is new is added. In a pod's template lists are merged by the keys below, objects
key by key, and null takes a key away. Everything else is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hekla.api.decode import encode
from hekla.api.job import JobSpec, TaskSpec, VolumeSpec
from hekla.api.job_flow import JobSpecPatch, TaskSpecPatch

MERGED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "ports": ("containerPort",),
    "tolerations": ("key",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
}
"""Lists of a pod's template, and what their items are told apart by."""
REPLACED: Final = frozenset(
    {"affinity", "securityContext", "livenessProbe", "readinessProbe", "startupProbe"}
)
"""Objects that a patch gives as a whole."""


def patched(spec: JobSpec, patch: JobSpecPatch | None) -> JobSpec:
    """``spec`` with what ``patch`` says instead."""
    if patch is None:
        return spec
    changes = _given(patch, but={"tasks", "volumes", "plugins"})
    if patch.plugins is not None:
        changes["plugins"] = (spec.plugins or {}) | patch.plugins
    if patch.volumes is not None:
        changes["volumes"] = _volumes(spec.volumes or [], patch.volumes)
    if patch.tasks is not None:
        changes["tasks"] = _tasks(spec.tasks or [], patch.tasks)
    return spec.model_copy(update=changes)


def _given(patch: JobSpecPatch | TaskSpecPatch, *, but: set[str]) -> dict[str, Any]:
    """What a patch names, by attribute."""
    return {
        name: value
        for name in type(patch).model_fields
        if name not in but and (value := getattr(patch, name)) is not None
    }


def _volumes(given: Sequence[VolumeSpec], patch: Sequence[VolumeSpec]) -> list[VolumeSpec]:
    changed = {volume.mount_path: volume for volume in patch}
    kept = [changed.pop(volume.mount_path, volume) for volume in given]
    return [*kept, *changed.values()]


def _tasks(given: Sequence[TaskSpec], patch: Sequence[TaskSpecPatch]) -> list[TaskSpec]:
    changes = {task.name: task for task in patch}
    kept = [_task(task, changes.pop(task.name, None)) for task in given]
    return [*kept, *(_new_task(task) for task in changes.values())]


def _new_task(patch: TaskSpecPatch) -> TaskSpec:
    given = encode(patch)
    if patch.template is not None:
        given["template"] = _merged({}, patch.template)
    return TaskSpec.model_validate(given, by_alias=True, by_name=False)


def _task(task: TaskSpec, patch: TaskSpecPatch | None) -> TaskSpec:
    if patch is None:
        return task
    changes = _given(patch, but={"name", "template"})
    if patch.template is not None:
        changes["template"] = _merged(task.template or {}, patch.template)
    return task.model_copy(update=changes)


def _merged(given: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(given)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _value(key, merged.get(key), value)
    return merged


def _value(key: str, given: Any, patch: Any) -> Any:
    if isinstance(patch, dict) and key not in REPLACED:
        return _merged(given if isinstance(given, dict) else {}, patch)
    if isinstance(patch, list) and key in MERGED_BY:
        return _items(MERGED_BY[key], given if isinstance(given, list) else [], patch)
    return patch


def _items(keys: tuple[str, ...], given: Sequence[Any], patch: Sequence[Any]) -> list[Any]:
    """Items of the same key merged, the others as they are, new ones at the end."""

    def key(item: Any) -> str:
        # Whatever stands there: it need not be what Kubernetes takes.
        told = [item.get(one) for one in keys] if isinstance(item, dict) else {"is": item}
        return json.dumps(told, sort_keys=True)

    items = list(given)
    places = {key(item): place for place, item in enumerate(items)}
    for item in patch:
        place = places.setdefault(key(item), len(items))
        if place == len(items):
            items.append({})
        items[place] = _merged(items[place], item) if isinstance(item, dict) else item
    return items

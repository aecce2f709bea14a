"""Pods as an API server and kubelets keep them, in memory, for tests that choose every step.

It answers as ``KubeClient`` does. Nothing happens by itself: a test says when a pod starts,
ends or vanishes, when a late request lands, and which events a watcher has got.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from hekla.domain import names
from hekla.kube.events import ADDED, DELETED, MODIFIED, RELISTED, WatchEvent
from hekla.kube.requests import Deletion, Patch, Reply
from hekla.kube.resources import Resource
from services.controller.pod_seen import project

Pod = dict[str, Any]


class PodApi:
    """The pods of one namespace."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.version = 0
        self.events: list[WatchEvent] = []
        """What watchers have not been given yet."""
        self.delay_creates = False
        """Creates time out for their caller and land later."""
        self.late: list[Pod] = []
        self.created: list[Pod] = []
        """Every pod there ever was."""

    # As the client.

    def create_many(
        self, resource: Resource, objects: Iterable[Mapping[str, Any]], *, timeout: float = 30
    ) -> list[Reply]:
        return [self._create(dict(item)) for item in objects]

    def _create(self, pod: Pod) -> Reply:
        name = pod["metadata"]["name"]
        if self.delay_creates:
            self.late.append(pod)
            return Reply(0, None, "Timeout", "no answer")
        if name in self.pods:
            known = copy.deepcopy(self.pods[name])
            return Reply(409, known, "AlreadyExists", f"pods {name!r} already exists")
        made = copy.deepcopy(pod)
        made["metadata"]["uid"] = str(uuid4())
        made["status"] = {"phase": "Pending"}
        self.pods[name] = made
        self.created.append(made)
        self._tell(ADDED, made)
        return Reply(201, copy.deepcopy(made))

    def land_late_creates(self) -> None:
        """Let every create that timed out happen now."""
        late, self.late = self.late, []
        delayed, self.delay_creates = self.delay_creates, False
        for pod in late:
            self._create(pod)
        self.delay_creates = delayed

    def delete_many(
        self, deletions: Iterable[Deletion], *, timeout: float = 30, fenced: bool = False
    ) -> list[Reply]:
        return [self._delete(one) for one in deletions]

    def _delete(self, deletion: Deletion) -> Reply:
        pod = self.pods.get(deletion.name)
        if pod is None:
            return Reply(404, None, "NotFound", "not found")
        if deletion.uid not in (None, pod["metadata"]["uid"]):
            return Reply(409, None, "Conflict", "uid differs")
        self.mark_deleted(deletion.name)
        return Reply(200, copy.deepcopy(pod))

    def patch_many(
        self, patches: Iterable[Patch], *, timeout: float = 30, fenced: bool = False
    ) -> list[Reply]:
        return [self._patch(one) for one in patches]

    def _patch(self, patch: Patch) -> Reply:
        pod = self.pods.get(patch.name)
        if pod is None:
            return Reply(404, None, "NotFound", "not found")
        wanted = patch.body["metadata"]
        if wanted["resourceVersion"] != pod["metadata"]["resourceVersion"]:
            return Reply(409, None, "Conflict", "changed")
        pod["metadata"]["finalizers"] = wanted["finalizers"]
        self._tell(MODIFIED, pod)
        self._remove_if_done(patch.name)
        return Reply(200, copy.deepcopy(pod))

    def get(
        self, resource: Resource, namespace: str | None, name: str, *, timeout: float = 30
    ) -> Reply:
        pod = self.pods.get(name)
        if pod is None:
            return Reply(404, None, "NotFound", "not found")
        return Reply(200, copy.deepcopy(pod))

    # As kubelets and other users.

    def start(self, name: str) -> None:
        """A node takes the pod and runs it."""
        pod = self.pods[name]
        pod["spec"]["nodeName"] = "n"
        pod["status"]["phase"] = "Running"
        self._tell(MODIFIED, pod)

    def end(self, name: str, code: int) -> None:
        """Its container exits."""
        pod = self.pods[name]
        pod["spec"]["nodeName"] = "n"
        pod["status"] = {
            "phase": "Failed" if code else "Succeeded",
            "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": code}}}],
        }
        self._tell(MODIFIED, pod)
        self._remove_if_done(name)

    def reject(self, name: str) -> None:
        """The kubelet refuses it."""
        pod = self.pods[name]
        pod["spec"]["nodeName"] = "n"
        pod["status"] = {"phase": "Failed", "reason": "OutOfcpu"}
        self._tell(MODIFIED, pod)

    def mark_deleted(self, name: str) -> None:
        """Someone deletes it: it ends when its kubelet has stopped it."""
        pod = self.pods[name]
        if "deletionTimestamp" in pod["metadata"]:
            return
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self._tell(MODIFIED, pod)
        self._remove_if_done(name)

    def vanish(self, name: str) -> None:
        """It is gone without anybody having seen it go: no event, finalizer or not."""
        del self.pods[name]

    def _remove_if_done(self, name: str) -> None:
        pod = self.pods[name]
        placed = "nodeName" in pod["spec"]
        over = pod["status"]["phase"] in ("Succeeded", "Failed") or not placed
        gone = "deletionTimestamp" in pod["metadata"] and over
        if gone and not pod["metadata"]["finalizers"]:
            del self.pods[name]
            self._tell(DELETED, pod)

    def _tell(self, kind: str, pod: Pod) -> None:
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        seen = project(pod)
        if seen is not None:
            self.events.append(WatchEvent(kind, seen))

    # As a watch.

    def take_events(self, most: int | None = None) -> list[WatchEvent]:
        """The next events a watcher gets, in order."""
        count = len(self.events) if most is None else most
        taken, self.events = self.events[:count], self.events[count:]
        return taken

    def relist(self) -> list[WatchEvent]:
        """A full list instead of the events so far."""
        self.events.clear()
        pods = [project(pod) for pod in self.pods.values()]
        return [WatchEvent(RELISTED, [pod for pod in pods if pod is not None])]

    def running(self) -> list[str]:
        """Names of pods whose containers run."""
        return sorted(
            name for name, pod in self.pods.items() if pod["status"]["phase"] == "Running"
        )

    def place_of(self, name: str) -> tuple[str, int, int]:
        """The task, index and run that a pod is for."""
        notes = self.pods[name]["metadata"]["annotations"]
        return notes[names.TASK_SPEC], int(notes[names.TASK_INDEX]), int(notes[names.RUN])

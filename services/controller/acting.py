"""Does what was recorded: makes the pods that were planned, removes those that are to go.

Every act may be repeated, and may overlap with another worker's: a pod's name is its
attempt's, it carries the attempt's uid, and a deletion names the pod's uid.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple
from uuid import UUID

from hekla import failpoint
from hekla.domain import names
from hekla.domain.attempt import Attempt, PodSeen
from hekla.kube.client import KubeClient
from hekla.kube.requests import Deletion, Reply
from hekla.kube.resources import PODS
from hekla.store import attempts, events, jobs, mirrored, observations
from hekla.store.attempts import Confirmed
from hekla.store.database import Session, now
from hekla.store.events import Event
from hekla.store.jobs import StoredJob
from hekla.telemetry import metrics
from services.controller.core import policies
from services.controller.core.pod import build_pod
from services.controller.mirror.owning import NOBODY, Owning
from services.controller.pod_seen import project

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Acts:
    """What there is to do for a job."""

    create: Sequence[Attempt] = ()
    delete: Sequence[Attempt] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.delete)


@dataclass(slots=True)
class Done:
    """What came of it."""

    confirmed: list[Confirmed] = field(default_factory=list)
    leaving: list[UUID] = field(default_factory=list)
    lost: list[UUID] = field(default_factory=list)
    never_was: list[UUID] = field(default_factory=list)
    custom_uid: UUID | None = None
    """The uid of the job's custom resource, if it was made or found just now."""
    refused: dict[str, str] | None = None
    """The last refusal: ``reason`` and ``message``."""
    found: list[tuple[UUID, PodSeen]] = field(default_factory=list)
    """Pods of the job that have the names of planned ones, which have these attempts."""
    unknown: int = 0
    """Requests whose effect is not known."""

    @property
    def failed(self) -> bool:
        """Whether something is to be tried again."""
        return self.refused is not None or self.unknown > 0

    def refuse(self, reason: str, message: str) -> None:
        """Note why something could not be done."""
        self.refused = {"reason": reason, "message": message}


class Acted(NamedTuple):
    """Acts, and what came of them."""

    stored: StoredJob
    acts: Acts
    done: Done


def note(session: Session, acted: Acted) -> None:
    """Write down what came of acts."""
    stored, done = acted.stored, acted.done
    if done.custom_uid is not None:
        mirrored.adopt_job(session, stored.uid, done.custom_uid, wake=False)
    attempts.confirm(session, done.confirmed)
    attempts.leaving(session, done.leaving)
    attempts.never_was(session, done.never_was)
    adopted = [
        pod
        for planned, pod in done.found
        if attempts.adopt(session, planned, pod.attempt_uid, pod.pod_uid)
    ]
    if adopted:
        log.info("pods adopted", extra={"pods": [pod.name for pod in adopted]})
        observations.observe(session, adopted)
    if done.lost:
        observations.lost(session, done.lost, at=now(session))
    if acted.acts.create and stored.wait != done.refused:
        jobs.set_wait(session, stored.uid, done.refused)
    if done.refused is not None:
        said = Event(events.WARNING, done.refused["reason"], done.refused["message"])
        events.add(session, stored.uid, [said])


class Actor:
    """Acts on pods for any number of workers."""

    def __init__(
        self, kube: KubeClient, *, lease: timedelta, owning: Owning | None = None
    ) -> None:
        """Take the rules; without ``owning`` pods have no owner."""
        self._kube = kube
        self._owning = owning
        # Deletes, the owner, creates: over while the claim, just renewed, is still ours.
        self._timeout = lease.total_seconds() / 4

    def act(self, stored: StoredJob, acts: Acts) -> Acted:
        """Do it; ``note`` what came of it."""
        [acted] = self.act_on([(stored, acts)])
        return acted

    def act_on(self, wanted: Sequence[tuple[StoredJob, Acts]]) -> Sequence[Acted]:
        """Do what there is to do for several jobs; their pods are made together."""
        acted = [Acted(stored, acts, Done()) for stored, acts in wanted]
        for stored, acts, done in acted:
            if acts.delete:
                self._delete(stored, acts.delete, done)
        failpoint.hit("controller.slow-act")
        asked = [
            (one, attempt, pod)
            for one in acted
            if one.acts.create
            for attempt, pod in self._pods_of(one)
        ]
        replies = self._kube.create_many(
            PODS, [pod for _, _, pod in asked], timeout=self._timeout
        )
        for (one, attempt, _), reply in zip(asked, replies, strict=True):
            self._created(one.stored, attempt, reply, one.done)
        return acted

    def makes_pods_at_once(self, stored: StoredJob) -> bool:
        """Whether nothing else has to be made before the job's pods."""
        return self._owning is None or self._owning.is_settled(stored)

    def _pods_of(self, one: Acted) -> Iterator[tuple[Attempt, Mapping[str, Any]]]:
        stored, acts, done = one
        owned = (
            NOBODY if self._owning is None else self._owning.of(stored, timeout=self._timeout)
        )
        if owned.unknown:
            done.unknown += 1
            return
        if owned.refusal is not None:
            done.refuse(*owned.refusal)
            return
        owner = None
        if owned.uid is not None:
            owner = str(owned.uid)
            done.custom_uid = owned.uid if owned.uid != stored.custom_uid else None
        for attempt in acts.create:
            task = policies.find_task(stored.job.spec, attempt.task)
            if task is None:
                continue  # the next pass dooms what has no place
            yield attempt, build_pod(stored.job, task, attempt, owner_uid=owner)

    def _created(self, stored: StoredJob, attempt: Attempt, reply: Reply, done: Done) -> None:
        known = reply.object if reply.ok or reply.status == HTTPStatus.CONFLICT else None
        meta = (known or {}).get("metadata") or {}
        theirs = (meta.get("annotations") or {}).get(names.ATTEMPT_UID)
        if meta.get("uid") and theirs == str(attempt.uid):
            done.confirmed.append(Confirmed(attempt.uid, meta["uid"]))
            metrics.pod_writes.labels("create", "ok").inc()
            if reply.ok:
                waited = datetime.now(UTC) - stored.created_at
                metrics.job_to_pod_creation.observe(waited.total_seconds() * 1000)
            return
        metrics.pod_writes.labels("create", "refused" if reply.status else "unknown").inc()
        pod = f"{stored.key.namespace}/{attempt.pod_name}"
        if reply.status == 0:
            done.unknown += 1
        elif reply.status == HTTPStatus.CONFLICT:
            owner = (meta.get("labels") or {}).get(names.JOB_UID)
            if owner == str(stored.uid) or meta.get("deletionTimestamp"):
                # Of an attempt that is over, or of an earlier job: it is on its way out. Or
                # of one that was lost with a database, and lives.
                done.unknown += 1
                seen = project(known or {}) if owner == str(stored.uid) else None
                if seen is not None and not seen.terminating:
                    done.found.append((attempt.uid, seen))
            else:
                done.refuse("PodNameTaken", f"pod {pod} exists and is not this job's")
        elif reply.status == HTTPStatus.NOT_FOUND:
            done.refuse("NamespaceNotFound", f"namespace {stored.key.namespace} does not exist")
        else:
            done.refuse("FailedCreate", f"pod {pod} was refused: {reply.message}")

    def _delete(self, stored: StoredJob, doomed: Sequence[Attempt], done: Done) -> None:
        targets: list[tuple[Attempt, str]] = []
        for attempt in doomed:
            uid = attempt.pod_uid or self._look_for(stored, attempt, done)
            if uid is not None:
                targets.append((attempt, uid))
        replies = self._kube.delete_many(
            [
                Deletion(PODS, stored.key.namespace, attempt.pod_name, uid)
                for attempt, uid in targets
            ],
            timeout=self._timeout,
        )
        for (attempt, _), reply in zip(targets, replies, strict=True):
            if reply.ok:
                done.leaving.append(attempt.uid)
                metrics.pod_writes.labels("delete", "ok").inc()
            elif reply.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                done.lost.append(attempt.uid)
            elif reply.status == 0:
                done.unknown += 1
            else:
                metrics.pod_writes.labels("delete", "refused").inc()
                pod = f"{stored.key.namespace}/{attempt.pod_name}"
                done.refuse("FailedDelete", f"pod {pod} is not deleted: {reply.message}")

    def _look_for(self, stored: StoredJob, attempt: Attempt, done: Done) -> str | None:
        """The uid of the pod of an attempt that was never confirmed, if there is one."""
        reply = self._kube.get(PODS, stored.key.namespace, attempt.pod_name)
        if reply.ok and reply.object is not None:
            meta = reply.object["metadata"]
            if (meta.get("annotations") or {}).get(names.ATTEMPT_UID) == str(attempt.uid):
                uid = str(meta["uid"])
                done.confirmed.append(Confirmed(attempt.uid, uid))
                return uid
            done.never_was.append(attempt.uid)
        elif reply.status == HTTPStatus.NOT_FOUND:
            done.never_was.append(attempt.uid)
        else:
            done.unknown += 1
        return None

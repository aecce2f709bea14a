"""``python -m services.controller uninstall``: take away what Hekla made in Kubernetes.

Without ``--yes`` it only tells. A pod belongs to a job that this database knows, or knew, or it
is left alone: it is another installation's. The finalizer of our pods goes with them, since
nobody is left who would remove it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from hekla import config
from hekla.config import ConfigError, setting
from hekla.domain import names
from hekla.domain.errors import DomainError, PreconditionError
from hekla.kube.client import KubeClient
from hekla.kube.mirror.custom import ROW_UID
from hekla.kube.requests import Deletion, Patch
from hekla.kube.resources import JOBS, PODGROUPS, PODS, Resource
from hekla.store import health, history, migrate, mirrored
from hekla.store.database import Database

GRACE_SECONDS: Final = 35.0
"""How long pods may take to end; Kubernetes gives them 30 s."""
LOOK_SECONDS: Final = 0.5
MADE: Final = (PODGROUPS, JOBS)
"""Kinds of custom resources that are made of rows."""
SHOWN: Final = 20
"""Pods that are listed by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallConfig:
    """Removes from Kubernetes what Hekla made there."""

    database_url: str = setting(env="HEKLA_DATABASE_URL", secret=True)
    """Where Postgres is; it knows which pods are ours."""

    kubeconfig: str = setting(env="KUBECONFIG", default="")
    """The kubeconfig file; empty takes the pod's own account, or ~/.kube/config."""

    yes: bool = False
    """Do it; otherwise it is only told what would be done."""

    purge: bool = False
    """Drop Hekla's tables too: jobs, history, everything."""

    force: bool = False
    """Do it although services of Hekla's are connected to the database."""


@dataclass(frozen=True, slots=True)
class Found:
    """Pods with our label."""

    ours: Sequence[Mapping[str, Any]] = field(default_factory=list)
    strange: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """Of jobs that this database never knew."""
    made: Sequence[Deletion] = field(default_factory=list)
    """Custom resources that were made of rows of ours."""


def main(argv: Sequence[str]) -> None:
    """Tell or do it; exit with 1 if it did not work."""
    flags = [
        f"{word}=true" if word in ("--yes", "--purge", "--force") else word for word in argv
    ]
    try:
        settings = config.load(UninstallConfig, "HEKLA_UNINSTALL", os.environ, flags)
        uninstall(settings, tell=_print)
    except (ConfigError, DomainError) as error:
        sys.stderr.write(f"hekla uninstall: {' '.join(str(error).split())}\n")
        raise SystemExit(1) from None


def uninstall(settings: UninstallConfig, *, tell: Callable[[str], None]) -> None:
    """Remove our pods, and the tables if they are to go too.

    Raises:
        DomainError: something is not reachable, or is still in use.
    """
    database = Database(settings.database_url, pool_size=1)
    try:
        with (
            KubeClient.start(
                settings.kubeconfig or None, isolated=False, service="uninstall"
            ) as kube,
        ):
            found = look(database, kube)
            _list(found, tell)
            with database.transaction() as session:
                state = health.look(session)
            if not settings.yes:
                tell("nothing was removed; --yes removes it")
                return
            if state.ours and not settings.force:
                raise PreconditionError(
                    f"{state.ours} connections of Hekla's services to {state.database} are"
                    " open: stop the services first, else they make the pods again"
                    " (or say --force)"
                )
            _remove(kube, found.ours, tell)
            remove_made(kube, found.made, tell)
        if settings.purge:
            migrate.purge(database)
            tell(f"database {state.database}: Hekla's tables were dropped")
        else:
            tell(
                f"database {state.database} stays, with all jobs and their history;"
                " --purge drops it"
            )
    finally:
        database.close()


def look(database: Database, kube: KubeClient) -> Found:
    """All pods with our label, those of known jobs apart from the others."""
    pods, _ = kube.list(PODS, label_selector=names.JOB_UID)
    uids = {uid for pod in pods if (uid := _job(pod)) is not None}
    made = [(resource, item) for resource in MADE for item in _marked(kube, resource)]
    with database.transaction() as session:
        known = history.known(session, uids)
        ours = mirrored.known(session, {uid for _, item in made if (uid := _row(item))})
    return Found(
        ours=[pod for pod in pods if _job(pod) in known],
        strange=[pod for pod in pods if _job(pod) not in known],
        made=[_deletion(resource, item) for resource, item in made if _row(item) in ours],
    )


def _marked(kube: KubeClient, resource: Resource) -> Iterator[Mapping[str, Any]]:
    """Custom resources that were made of rows; none where the kind is not installed."""
    if resource.plural not in kube.served(resource.api_version):
        return
    for item in kube.list(resource)[0]:
        if _row(item) is not None:
            yield item


def _row(item: Mapping[str, Any]) -> UUID | None:
    """The uid of the row that a custom resource was made of."""
    try:
        return UUID(item["metadata"]["annotations"][ROW_UID])
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def _deletion(resource: Resource, item: Mapping[str, Any]) -> Deletion:
    meta = item["metadata"]
    return Deletion(
        resource, meta["namespace"], meta["name"], meta["uid"], propagation="Background"
    )


def _job(pod: Mapping[str, Any]) -> UUID | None:
    try:
        return UUID(pod["metadata"]["labels"][names.JOB_UID])
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def _list(found: Found, tell: Callable[[str], None]) -> None:
    tell(f"{_pods(found.ours)} of Hekla's jobs:" if found.ours else "no pods of Hekla's jobs")
    _name(found.ours, tell)
    if found.made:
        tell(f"{_customs(found.made)} made of Hekla's jobs")
    if found.strange:
        tell(f"{_pods(found.strange)} of jobs this database never knew, left alone:")
        _name(found.strange, tell)


def _pods(pods: Sequence[Mapping[str, Any]]) -> str:
    return "1 pod" if len(pods) == 1 else f"{len(pods)} pods"


def _customs(made: Sequence[Deletion]) -> str:
    return "1 custom resource" if len(made) == 1 else f"{len(made)} custom resources"


def _name(pods: Sequence[Mapping[str, Any]], tell: Callable[[str], None]) -> None:
    for pod in pods[:SHOWN]:
        metadata = pod["metadata"]
        tell(f"  {metadata['namespace']}/{metadata['name']}")
    if len(pods) > SHOWN:
        tell(f"  and {len(pods) - SHOWN} more")


def _remove(
    kube: KubeClient, pods: Sequence[Mapping[str, Any]], tell: Callable[[str], None]
) -> None:
    if not pods:
        return
    deletions = [
        Deletion(PODS, meta["namespace"], meta["name"], meta["uid"])
        for meta in (pod["metadata"] for pod in pods)
    ]
    refused = [
        reply.message or reply.reason
        for reply in kube.delete_many(deletions)
        if not reply.ok and reply.status not in (404, 409)
    ]
    if refused:
        raise PreconditionError(f"{len(refused)} pods were not deleted: {refused[0]}")
    ours = {pod["metadata"]["uid"] for pod in pods}
    until = time.monotonic() + GRACE_SECONDS
    # A pod's end changes it, so a finalizer may have to be removed more than once.
    while left := [pod for pod in _labelled(kube) if pod["metadata"]["uid"] in ours]:
        if time.monotonic() > until:
            raise PreconditionError(f"{len(left)} pods are still ending; run it again later")
        kube.patch_many(
            without_finalizer(pod)
            for pod in left
            if names.OUTCOME_FINALIZER in (pod["metadata"].get("finalizers") or ())
        )
        time.sleep(LOOK_SECONDS)
    tell(f"removed {_pods(pods)}")


def remove_made(
    kube: KubeClient, made: Sequence[Deletion], tell: Callable[[str], None]
) -> None:
    """Delete custom resources that nobody keeps any more; those of users stay."""
    if not made:
        return
    for reply in kube.delete_many(made):
        if not reply.ok and reply.status not in (404, 409):
            raise PreconditionError(f"a custom resource was not deleted: {reply.message}")
    tell(f"removed {_customs(made)}")


def _labelled(kube: KubeClient) -> Sequence[Mapping[str, Any]]:
    return kube.list(PODS, label_selector=names.JOB_UID)[0]


def without_finalizer(pod: Mapping[str, Any]) -> Patch:
    """What takes our finalizer from a pod, and leaves those of others."""
    metadata = pod["metadata"]
    body = {
        "metadata": {
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "finalizers": [
                one for one in metadata["finalizers"] if one != names.OUTCOME_FINALIZER
            ],
        }
    }
    return Patch(PODS, metadata["namespace"], metadata["name"], body)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()

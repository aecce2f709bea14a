"""Installs the CustomResourceDefinitions of our kinds, as often as wanted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from hekla.api.crd import DEFINITIONS
from hekla.domain.errors import ConflictError, UnavailableError
from hekla.kube.client import KubeClient
from hekla.kube.requests import Patch
from hekla.kube.resources import CUSTOMRESOURCEDEFINITIONS

_PAUSE: Final = 0.05


def install(client: KubeClient, *, timeout: float = 30.0) -> list[str]:
    """Make the definitions of our kinds, or bring those that are there up to date.

    Returns once the API serves them all. What is there is overwritten, so this is for clusters
    of our own; on others an administrator applies ``deploy/crds``.

    Returns:
        The names of those that were made.

    Raises:
        DomainError: the API refuses one, does not answer, or does not serve them in time.
    """
    deadline = time.monotonic() + timeout
    manifests = [one.manifest() for one in DEFINITIONS]
    replies = client.create_many(CUSTOMRESOURCEDEFINITIONS, manifests, timeout=timeout)
    made, there = [], []
    for manifest, reply in zip(manifests, replies, strict=True):
        if reply.status == 409:
            there.append(manifest)
        else:
            reply.found()
            made.append(str(manifest["metadata"]["name"]))
    _bring_up_to_date(client, there, timeout)
    names = [str(manifest["metadata"]["name"]) for manifest in manifests]
    while waiting := _not_established(client, names):
        if time.monotonic() > deadline:
            raise UnavailableError(f"the API does not serve {', '.join(waiting)} yet")
        time.sleep(_PAUSE)
    return made


def _bring_up_to_date(
    client: KubeClient, manifests: Sequence[dict[str, Any]], timeout: float
) -> None:
    patches = [
        Patch(
            CUSTOMRESOURCEDEFINITIONS,
            None,
            manifest["metadata"]["name"],
            {"spec": manifest["spec"]},
        )
        for manifest in manifests
    ]
    for reply in client.patch_many(patches, timeout=timeout):
        reply.found()


def _not_established(client: KubeClient, names: Sequence[str]) -> list[str]:
    """Those of ``names`` that are not served."""
    waiting = []
    found, _ = client.list(CUSTOMRESOURCEDEFINITIONS)
    conditions = {
        each["metadata"]["name"]: {
            one["type"]: one for one in each.get("status", {}).get("conditions", [])
        }
        for each in found
    }
    for name in names:
        accepted = conditions.get(name, {}).get("NamesAccepted", {})
        if accepted.get("status") == "False":
            raise ConflictError(f"{name} is not served: {accepted.get('message')}")
        if conditions.get(name, {}).get("Established", {}).get("status") != "True":
            waiting.append(name)
    return waiting

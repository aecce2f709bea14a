"""Whether kinds are there at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hekla.kube.client import KubeClient
from hekla.kube.resources import Resource

TIMEOUT: Final = 5.0
"""Seconds for an answer; it is asked again."""


def missing(kube: KubeClient, resources: Sequence[Resource]) -> Sequence[Resource]:
    """Those of ``resources`` that the API server does not serve.

    Raises:
        DomainError: it does not answer, or does not let us in.
    """
    served: dict[str, frozenset[str]] = {}
    for resource in resources:
        if resource.api_version not in served:
            served[resource.api_version] = kube.served(resource.api_version, timeout=TIMEOUT)
    return [one for one in resources if one.plural not in served[one.api_version]]

"""Whether kinds are there at all."""

from __future__ import annotations

from collections.abc import Sequence

from hekla.kube.client import KubeClient
from hekla.kube.resources import Resource


def missing(kube: KubeClient, resources: Sequence[Resource]) -> Sequence[Resource]:
    """Those of ``resources`` that the API server does not serve.

    Raises:
        DomainError: it does not answer, or does not let us in.
    """
    served: dict[str, frozenset[str]] = {}
    for resource in resources:
        if resource.api_version not in served:
            served[resource.api_version] = kube.served(resource.api_version)
    return [one for one in resources if one.plural not in served[one.api_version]]

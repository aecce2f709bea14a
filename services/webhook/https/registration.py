"""What API servers are told: whom to call about which objects, and whom to believe.

Two objects, both named ``hekla-webhook``. Every replica keeps them as they should be; what is
written names the version it was read at, so that two replicas do not undo each other's work.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from hekla.domain.errors import DomainError, UnavailableError
from hekla.domain.timestamps import from_text, to_text
from hekla.kube.client import KubeClient
from hekla.kube.errors import error_for
from hekla.kube.requests import Deletion, Patch, Reply
from hekla.kube.resources import (
    MUTATINGWEBHOOKCONFIGURATIONS,
    VALIDATINGWEBHOOKCONFIGURATIONS,
    Resource,
)
from services.webhook.https import authority
from services.webhook.https.inventory import ENDPOINTS, Endpoint

NAME: Final = "hekla-webhook"
LABELS: Final = {"app.kubernetes.io/name": "hekla", "app.kubernetes.io/component": "webhook"}
FORMER_UNTIL: Final = "hekla.io/former-authorities-until"
"""Annotation: until when those are believed too that we are no longer signed by."""
FORMER: Final = timedelta(hours=1)
SERVICE_PORT: Final = 443
TIMEOUT: Final = 10.0
_ATTEMPTS: Final = 5

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Where API servers find us."""

    namespace: str
    service: str
    url: str | None = None
    """Instead of the Service."""

    def client_config(self, path: str) -> dict[str, Any]:
        """As a webhook states it, but for whom to believe."""
        if self.url is not None:
            return {"url": f"{self.url}{path}"}
        service = {
            "name": self.service,
            "namespace": self.namespace,
            "path": path,
            "port": SERVICE_PORT,
        }
        return {"service": service}

    @property
    def left_alone(self) -> Sequence[str]:
        """Namespaces whose objects are not asked about: they must work without us."""
        return ["kube-system"] if self.url is not None else [self.namespace, "kube-system"]


def webhooks(
    endpoints: Iterable[Endpoint], target: Target, bundle: str | None
) -> list[dict[str, Any]]:
    """Webhooks of one configuration, with every default that an API server would fill in."""
    return [_webhook(endpoint, target, bundle) for endpoint in endpoints]


def _webhook(endpoint: Endpoint, target: Target, bundle: str | None) -> dict[str, Any]:
    config = target.client_config(endpoint.path)
    if bundle is not None:
        config["caBundle"] = base64.b64encode(bundle.encode()).decode()
    outside = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": sorted(target.left_alone),
    }
    return {
        "name": endpoint.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": config,
        "rules": [
            {
                "apiGroups": [endpoint.resource.group],
                "apiVersions": [endpoint.resource.version],
                "operations": list(endpoint.operations),
                "resources": [endpoint.resource.plural],
                "scope": "*",
            }
        ],
        "failurePolicy": endpoint.failure_policy,
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [outside]},
        "objectSelector": {},
        "sideEffects": "None",  # so a dry run is asked about too
        "timeoutSeconds": endpoint.timeout_seconds,
        **({"reinvocationPolicy": "Never"} if endpoint.mutates else {}),
    }


class Registrar:
    """Keeps both configurations as they should be."""

    def __init__(self, kube: KubeClient, target: Target, paths: Iterable[str]) -> None:
        self._kube = kube
        self._target = target
        chosen = [ENDPOINTS[path] for path in paths]
        self._endpoints = {
            MUTATINGWEBHOOKCONFIGURATIONS: [each for each in chosen if each.mutates],
            VALIDATINGWEBHOOKCONFIGURATIONS: [each for each in chosen if not each.mutates],
        }

    def keep(self, bundle: str | None, now: datetime) -> bool:
        """Mend what is not as it should be; give whether ``bundle`` was believed already.

        Raises:
            DomainError: the API server does not let us, or is away.
        """
        believed = [
            self._keep(resource, endpoints, bundle, now)
            for resource, endpoints in self._endpoints.items()
        ]
        return all(believed)

    def _keep(
        self,
        resource: Resource,
        endpoints: Sequence[Endpoint],
        bundle: str | None,
        now: datetime,
    ) -> bool:
        for _ in range(_ATTEMPTS):
            reply = self._kube.get(resource, None, NAME, timeout=TIMEOUT)
            found = None if reply.status == 404 else reply.found()
            believed = found is not None and believes(found, bundle)
            wanted = configuration(
                resource, endpoints, self._target, bundle, found=found, now=now
            )
            if wanted is None:
                return believed or not endpoints
            reply = self._write(resource, found, wanted)
            if reply.ok:
                return believed or not endpoints
            if reply.status not in {404, 409}:
                raise error_for(reply.status, reply.reason, reply.message)
        raise UnavailableError(f"{resource.plural} {NAME} is changed by others all the time")

    def _write(self, resource: Resource, found: Object | None, wanted: Object) -> Reply:
        if found is None:
            [reply] = self._kube.create_many(resource, [wanted], timeout=TIMEOUT)
        else:
            patch = Patch(resource, None, NAME, dict(wanted))
            [reply] = self._kube.patch_many([patch], timeout=TIMEOUT)
        return reply


def configuration(
    resource: Resource,
    endpoints: Sequence[Endpoint],
    target: Target,
    bundle: str | None,
    *,
    found: Object | None,
    now: datetime,
) -> dict[str, Any] | None:
    """What to create, or to merge into what is ``found``; None if it is as it should be."""
    if found is None:
        if not endpoints:
            return None
        return {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": NAME, "labels": dict(LABELS)},
            "webhooks": webhooks(endpoints, target, bundle and authority.joined([bundle], now)),
        }
    metadata = found.get("metadata") or {}
    mark = (metadata.get("annotations") or {}).get(FORMER_UNTIL)
    told, until = _trusted(bundle, found, mark, now)
    wanted: dict[str, Any] = {}
    if mark != until:
        wanted["annotations"] = {FORMER_UNTIL: until}
    if not LABELS.items() <= (metadata.get("labels") or {}).items():
        wanted["labels"] = dict(LABELS)
    listed = webhooks(endpoints, target, told)
    if not wanted and (found.get("webhooks") or []) == listed:
        return None
    wanted["resourceVersion"] = metadata.get("resourceVersion")
    return {"metadata": wanted, "webhooks": listed}


def _trusted(
    bundle: str | None, found: Object, mark: Any, now: datetime
) -> tuple[str | None, str | None]:
    """The authorities to tell of, and until when they are more than ours.

    Those that were told of so far are believed for a while longer: there may be replicas that
    still show what they signed.
    """
    if bundle is None:
        return None, None
    others = [each for each in _told(found) if each and not authority.within(bundle, each)]
    until = (_instant(mark) or now + FORMER) if others else None
    if until is None or until <= now:
        return authority.joined([bundle], now), None
    return authority.joined([bundle, *others], now), to_text(until)


def believes(found: Object, bundle: str | None) -> bool:
    """Whether API servers believe all of ``bundle`` by a configuration that is ``found``."""
    return bundle is None or all(authority.within(each, bundle) for each in _told(found))


def _told(found: Object) -> list[str]:
    """The distinct bundles of a configuration; empty for what is none."""
    texts: dict[str, None] = {}
    listed = found.get("webhooks")
    for webhook in listed if isinstance(listed, list) else ():
        config = webhook.get("clientConfig") if isinstance(webhook, dict) else None
        text = config.get("caBundle") if isinstance(config, dict) else None
        try:
            bundle = base64.b64decode(text or "", validate=True).decode()
            authority.authorities_in(bundle)
        except (ValueError, TypeError):
            bundle = ""
        texts[bundle] = None
    return list(texts)


def _instant(text: Any) -> datetime | None:
    try:
        return from_text(text) if isinstance(text, str) else None
    except DomainError:
        return None


def unregister(kube: KubeClient) -> Sequence[str]:
    """Remove both configurations; give the names of those that were there.

    Raises:
        DomainError: the API server does not let us, or is away.
    """
    gone = []
    for resource in (MUTATINGWEBHOOKCONFIGURATIONS, VALIDATINGWEBHOOKCONFIGURATIONS):
        [reply] = kube.delete_many([Deletion(resource, None, NAME)], timeout=TIMEOUT)
        if reply.ok:
            gone.append(f"{resource.plural}/{NAME}")
        elif reply.status != 404:
            raise error_for(reply.status, reply.reason, reply.message)
    return gone

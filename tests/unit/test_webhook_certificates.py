"""Certificates of the webhook, over years, and what API servers are told of them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from hekla.config import ConfigError
from hekla.kube.resources import (
    MUTATINGWEBHOOKCONFIGURATIONS,
    VALIDATINGWEBHOOKCONFIGURATIONS,
    Resource,
)
from services.webhook.config import WebhookConfig
from services.webhook.https import authority
from services.webhook.https.authority import Kept, Served, renewed
from services.webhook.https.inventory import ENDPOINTS, REGISTERED, Endpoint
from services.webhook.https.registration import (
    FORMER,
    FORMER_UNTIL,
    NAME,
    Target,
    believes,
    configuration,
)

NOW: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DAY: Final = timedelta(days=1)
HOST: Final = "hekla-webhook.hekla.svc"
TARGET: Final = Target("hekla", "hekla-webhook")

# ---- certificates -----------------------------------------------------------------------


def trusts(bundle: str, served: Served, now: datetime, host: str = HOST) -> bool:
    """Whether a client that believes ``bundle`` talks to who shows ``served``."""
    policy = PolicyBuilder().store(Store(list(authority.authorities_in(bundle)))).time(now)
    server = x509.load_pem_x509_certificate(served.certificate.encode())
    try:
        policy.build_server_verifier(x509.DNSName(host)).verify(server, [])
    except VerificationError:
        return False
    return True


def made(*hosts: str, now: datetime = NOW) -> Kept:
    kept = renewed(None, hosts or (HOST,), now)
    assert kept is not None
    return kept


def test_what_is_made_is_trusted_and_good_for_a_while() -> None:
    kept = made(HOST, "127.0.0.1")

    assert trusts(kept.bundle, kept.served, NOW)
    assert not trusts(kept.bundle, kept.served, NOW, "elsewhere")
    assert not trusts(made().bundle, kept.served, NOW)
    assert renewed(kept, [HOST], NOW) is None
    assert renewed(kept, [HOST], NOW + 200 * DAY) is None
    assert authority.ends(kept.served.certificate) == (NOW + 365 * DAY)
    assert "PRIVATE" not in repr(kept)


def test_over_years_no_client_is_ever_shown_what_it_was_not_told_to_believe() -> None:
    kept = made()
    told, changes, authorities = kept.bundle, 0, set[str]()
    for step in range(0, 25 * 365, 10):
        now = NOW + step * DAY
        fresh = renewed(kept, [HOST], now)
        if fresh is not None:
            assert trusts(told, fresh.served, now), "shown before it was announced"
            kept, changes = fresh, changes + 1
        assert renewed(kept, [HOST], now) is None, "good for now"
        told = kept.bundle
        authorities.add(kept.authority_key)
        assert trusts(told, kept.served, now)
        assert authority.ends(kept.served.certificate) > now + 60 * DAY

    assert len(authorities) == 4
    assert changes < 60
    assert len(authority.authorities_in(kept.bundle)) <= 3


def test_a_server_that_gets_another_name_keeps_its_authority_and_its_old_names() -> None:
    kept = made()

    fresh = renewed(kept, ["other"], NOW)

    assert fresh is not None
    assert fresh.bundle == kept.bundle
    assert trusts(kept.bundle, fresh.served, NOW)
    assert trusts(kept.bundle, fresh.served, NOW, "other")
    assert renewed(fresh, [HOST], NOW) is None


@pytest.mark.parametrize(
    "spoilt",
    [
        Kept("", "", Served("", "")),
        Kept("x", "y", Served("z", "z")),
        replace(made(), authority_key=made().authority_key),
        replace(made(), bundle=made().bundle),
        made(now=NOW - 4000 * DAY),
    ],
)
def test_what_is_of_no_use_is_made_afresh(spoilt: Kept) -> None:
    fresh = renewed(spoilt, [HOST], NOW)

    assert fresh is not None
    assert trusts(fresh.bundle, fresh.served, NOW)


@pytest.mark.parametrize(
    "served",
    [Served("", ""), replace(made().served, key=made().served.key), made().served],
)
def test_a_server_certificate_of_no_use_is_signed_anew_by_the_same_authority(
    served: Served,
) -> None:
    kept = made()

    fresh = renewed(replace(kept, served=served), [HOST], NOW)

    assert fresh is not None
    assert fresh.bundle == kept.bundle
    assert trusts(kept.bundle, fresh.served, NOW)


# ---- what API servers are told -----------------------------------------------------------

MUTATING, VALIDATING = MUTATINGWEBHOOKCONFIGURATIONS, VALIDATINGWEBHOOKCONFIGURATIONS
ENABLED: Final = [ENDPOINTS[path] for path in REGISTERED]
Object = dict[str, Any]


def wanted(
    bundle: str | None,
    found: Object | None = None,
    *,
    resource: Resource = VALIDATING,
    now: datetime = NOW,
    endpoints: Sequence[Endpoint] = ENABLED,
) -> Object | None:
    return configuration(resource, endpoints, TARGET, bundle, found=found, now=now)


def merged(found: Object, patch: Object) -> Object:
    """What a merge patch makes of a configuration."""
    annotations = {
        **found["metadata"].get("annotations", {}),
        **patch["metadata"].get("annotations", {}),
    }
    kept = {key: value for key, value in annotations.items() if value is not None}
    metadata = {**found["metadata"], **patch["metadata"], "annotations": kept}
    return {**found, "metadata": metadata, "webhooks": patch["webhooks"]}


def told(found: Object) -> str:
    [bundle] = {webhook["clientConfig"]["caBundle"] for webhook in found["webhooks"]}
    return base64.b64decode(bundle).decode()


def test_a_configuration_says_all_that_an_api_server_would_fill_in() -> None:
    bundle = made().bundle

    chosen = [ENDPOINTS["/jobs/mutate"]]

    found = wanted(bundle, resource=MUTATING, endpoints=chosen)

    assert found is not None
    assert (found["kind"], found["metadata"]["name"]) == ("MutatingWebhookConfiguration", NAME)
    [webhook] = found["webhooks"]
    assert webhook == {
        "name": "mutatejob.volcano.sh",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {
                "namespace": "hekla",
                "name": "hekla-webhook",
                "path": "/jobs/mutate",
                "port": 443,
            },
            "caBundle": base64.b64encode(bundle.encode()).decode(),
        },
        "rules": [
            {
                "apiGroups": ["batch.volcano.sh"],
                "apiVersions": ["v1alpha1"],
                "operations": ["CREATE"],
                "resources": ["jobs"],
                "scope": "*",
            }
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": ["hekla", "kube-system"],
                }
            ]
        },
        "objectSelector": {},
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "reinvocationPolicy": "Never",
    }
    assert (
        wanted(bundle, found, resource=MUTATING, endpoints=[ENDPOINTS["/jobs/mutate"]]) is None
    )


def test_pods_never_hang_on_us() -> None:
    """C122: selectors match labels, not schedulerName, so every pod of the cluster comes by."""
    found = wanted(made().bundle, endpoints=[ENDPOINTS["/pods/validate"]])

    assert found is not None
    [webhook] = found["webhooks"]
    assert (webhook["failurePolicy"], webhook["timeoutSeconds"]) == ("Ignore", 3)


def test_a_url_is_told_as_it_is() -> None:
    target = Target("hekla", "hekla-webhook", "https://127.0.0.1:8443")

    chosen = [ENDPOINTS["/jobs/validate"]]
    found = configuration(VALIDATING, chosen, target, None, found=None, now=NOW)

    assert found is not None
    config = found["webhooks"][0]["clientConfig"]
    assert config == {"url": "https://127.0.0.1:8443/jobs/validate"}
    [selector] = found["webhooks"][0]["namespaceSelector"]["matchExpressions"]
    assert selector["values"] == ["kube-system"]


@pytest.mark.parametrize(
    "change",
    [
        {"webhooks": []},
        {"webhooks": None},
        {"webhooks": "?"},
        {"webhooks": [{"name": "x", "clientConfig": {"caBundle": "?"}}]},
        {"webhooks": [{"name": "x", "clientConfig": None}, 7]},
    ],
)
def test_what_somebody_else_made_of_it_is_mended(change: Object) -> None:
    bundle = made().bundle
    right = wanted(bundle)
    assert right is not None
    found = {**right, **change, "metadata": {"name": NAME, "resourceVersion": "7"}}

    patch = wanted(bundle, found)

    assert patch is not None
    assert patch["metadata"]["resourceVersion"] == "7"
    assert merged(found, patch)["webhooks"] == right["webhooks"]
    assert wanted(bundle, merged(found, patch)) is None


def test_former_authorities_are_believed_for_a_while_longer_whoever_writes() -> None:
    """C123: replicas learn of new files at different times."""
    old, new = made().bundle, made(now=NOW + DAY).bundle
    found = wanted(old)
    assert found is not None

    patch = wanted(new, found)
    assert patch is not None
    both = merged(found, patch)
    assert believes(both, old)
    assert believes(both, new)
    assert not believes(found, new)
    assert wanted(new, both) is None
    assert wanted(old, both) is None, "a replica that has not heard changes nothing"
    later = wanted(new, both, now=NOW + FORMER)
    assert later is not None
    alone = merged(both, later)
    assert told(alone) == new
    assert FORMER_UNTIL not in alone["metadata"]["annotations"]
    assert wanted(new, alone, now=NOW + FORMER) is None


def test_nothing_is_made_for_no_paths_and_what_was_there_is_emptied() -> None:
    bundle = made().bundle
    found = wanted(bundle)
    assert found is not None

    assert wanted(bundle, endpoints=[]) is None
    patch = wanted(bundle, found, endpoints=[])
    assert patch is not None
    assert patch["webhooks"] == []


# ---- settings ------------------------------------------------------------------------------


def config(**more: Any) -> WebhookConfig:
    return WebhookConfig(database_url="postgresql://h/d", **more)


def test_settings_name_the_hosts_of_the_certificate() -> None:
    assert "hekla-webhook.hekla.svc" in config().hosts
    assert config(url="https://127.0.0.1:1").hosts == ["127.0.0.1"]
    assert config(url="https://[::1]:1").hosts == ["::1"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"certificate_file": "c"}, "HEKLA_WEBHOOK_KEY_FILE"),
        ({"ca_file": "c"}, "HEKLA_WEBHOOK_CA_FILE"),
        ({"enabled_admission": ("/jobs/mutate", "/x")}, "has /x, none of"),
        ({"url": "http://h:1"}, "is not https"),
        ({"url": "https://h:x"}, "is not https"),
        ({"url": "https://h/p"}, "is not https"),
        ({"url": "https://"}, "is not https"),
    ],
)
def test_settings_that_make_no_sense_are_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        config(**more)

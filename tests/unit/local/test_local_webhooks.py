"""Which webhooks a write concerns, and what of a registration is refused."""

from __future__ import annotations

from typing import Any

import pytest

from hekla.local.kinds import registry
from hekla.local.kinds.registry import Kind, Object
from hekla.local.rules import webhooks as configurations
from hekla.local.storage.memory import Entry
from hekla.local.verbs.steps import CREATE, DELETE, UPDATE, Step
from hekla.local.webhooks.hooks import Hook, concerned, hooks_of, own_labels
from tests.support.webhook_server import registration, rule

PODS, NODES, MAPS, SPACES = (
    registry.PODS,
    registry.NODES,
    registry.CONFIGMAPS,
    registry.NAMESPACES,
)
LEASES = registry.LEASES
URL = {"url": "https://localhost/x"}


def hook(kind: Kind = registry.VALIDATING_WEBHOOKS, **webhook: Any) -> Hook:
    value = registration("x", {"clientConfig": URL, **webhook})
    configurations.fill_mutating(value)
    [found] = hooks_of(kind, value)
    return found


@pytest.mark.parametrize(
    ("given", "kind", "operation", "part", "matches"),
    [
        (rule("pods", "CREATE"), PODS, CREATE, "", True),
        (rule("pods", "CREATE"), PODS, UPDATE, "", False),
        (rule("pods", "CREATE"), MAPS, CREATE, "", False),
        (rule("pods", "*"), PODS, DELETE, "", True),
        (rule("*", "*"), MAPS, UPDATE, "", True),
        (rule("*", "*"), PODS, UPDATE, "status", False),
        (rule("*/*", "*"), PODS, UPDATE, "status", True),
        (rule("*/*", "*"), PODS, UPDATE, "", True),
        (rule("pods/*", "*"), PODS, CREATE, "", True),
        (rule("pods/*", "*"), PODS, CREATE, "binding", True),
        (rule("pods/binding", "*"), PODS, CREATE, "binding", True),
        (rule("pods/binding", "*"), PODS, CREATE, "", False),
        (rule("*/status", "*"), NODES, UPDATE, "status", True),
        (rule("*/status", "*"), NODES, UPDATE, "", False),
        (rule("pods", "*", groups=["apps"]), PODS, CREATE, "", False),
        (rule("pods", "*", groups=["*"]), PODS, CREATE, "", True),
        (rule("leases", "*"), LEASES, CREATE, "", False),
        (rule("leases", "*", groups=["coordination.k8s.io"]), LEASES, CREATE, "", True),
        (rule("pods", "*", apiVersions=["v2"]), PODS, CREATE, "", False),
        (rule("pods", "*", scope="Namespaced"), PODS, CREATE, "", True),
        (rule("pods", "*", scope="Cluster"), PODS, CREATE, "", False),
        (rule("*", "*", scope="Cluster"), NODES, CREATE, "", True),
        (rule("*", "*", scope="Cluster"), SPACES, CREATE, "", True),
        (rule("*", "*", scope="Namespaced"), SPACES, CREATE, "", False),
    ],
)
def test_rules(given: Object, kind: Kind, operation: str, part: str, *, matches: bool) -> None:
    assert bool(concerned([hook(rules=[given])], [kind], operation, part)) is matches


def test_webhooks_are_never_asked_about_webhooks() -> None:
    everything = hook(rules=[rule("*/*", "*", groups=["*"])])
    for kind in (registry.MUTATING_WEBHOOKS, registry.VALIDATING_WEBHOOKS):
        assert concerned([everything], [kind], CREATE, "") == ()


def test_a_rule_about_another_version_matches_unless_it_must_be_exact() -> None:
    old, new = (Kind("x.io", version, "things", "Thing") for version in ("v1", "v2"))
    about_old: dict[str, Any] = {"rules": [rule("things", "*", groups=["x.io"])]}
    [call] = concerned([hook(**about_old)], [new, old], CREATE, "")
    assert call.kind is old
    assert concerned([hook(matchPolicy="Exact", **about_old)], [new, old], CREATE, "") == ()
    [call] = concerned([hook(rules=[rule("*", "*", groups=["*"])])], [old, new], CREATE, "")
    assert call.kind is old


def step(value: Object | None, old: Object | None = None, kind: Kind = MAPS) -> Step:
    entry = None
    if old is not None:
        labels = old["metadata"].get("labels", {})
        entry = Entry(kind, "n", "x", "u", 1, labels, (), deleting=False, raw=b"{}")
    operation = CREATE if old is None else DELETE if value is None else UPDATE
    return Step(True, operation, kind, "n", "x", "", value, entry, False)  # noqa: FBT003


def labelled(**labels: str) -> Object:
    return {"metadata": {"name": "x", "labels": labels}}


WANTS_A = {"matchLabels": {"a": "b"}}
NOT_C = {"matchExpressions": [{"key": "c", "operator": "DoesNotExist"}]}


@pytest.mark.parametrize(
    ("objects", "namespaces", "asked", "labels", "selected"),
    [
        ({}, {}, step(labelled()), {}, True),
        (WANTS_A, {}, step(labelled(a="b")), {}, True),
        (WANTS_A, {}, step(labelled()), {}, False),
        (WANTS_A, {}, step(labelled(), labelled(a="b")), {}, True),
        (WANTS_A, {}, step(labelled(a="b"), labelled()), {}, True),
        (WANTS_A, {}, step(None, labelled(a="b")), {}, True),
        (WANTS_A, {}, step(None, labelled()), {}, False),
        (WANTS_A, {}, step({}), {}, False),
        ({}, WANTS_A, step(labelled()), {"a": "b"}, True),
        ({}, WANTS_A, step(labelled()), {"a": "c"}, False),
        ({}, WANTS_A, step(labelled()), None, True),
        ({}, NOT_C, step(labelled()), {"c": ""}, False),
        (WANTS_A, WANTS_A, step(labelled(a="b")), {"a": "b"}, True),
        (WANTS_A, WANTS_A, step(labelled(a="b")), {}, False),
    ],
)
def test_selectors(
    objects: Object,
    namespaces: Object,
    asked: Step,
    labels: dict[str, str] | None,
    *,
    selected: bool,
) -> None:
    chosen = hook(objectSelector=objects, namespaceSelector=namespaces)
    assert chosen.selects(asked, labels) is selected


def test_of_a_namespace_its_own_labels_count() -> None:
    assert own_labels(step(labelled(a="new"), labelled(a="old"), SPACES)) == {"a": "new"}
    assert own_labels(step(None, labelled(a="old"), SPACES)) == {"a": "old"}
    assert own_labels(step(labelled(a="x"))) is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "short"}, "name"),
        ({"name": ""}, "name"),
        ({"admissionReviewVersions": ["v1beta1"]}, "admissionReviewVersions"),
        ({"admissionReviewVersions": []}, "admissionReviewVersions"),
        ({"sideEffects": None}, "sideEffects"),
        ({"sideEffects": "Some"}, "sideEffects"),
        ({"failurePolicy": "Maybe"}, "failurePolicy"),
        ({"matchPolicy": []}, "matchPolicy"),
        ({"reinvocationPolicy": "Always"}, "reinvocationPolicy"),
        ({"timeoutSeconds": 0}, "timeoutSeconds"),
        ({"timeoutSeconds": 31}, "timeoutSeconds"),
        ({"timeoutSeconds": True}, "timeoutSeconds"),
        ({"timeoutSeconds": "5"}, "timeoutSeconds"),
        ({"namespaceSelector": 5}, "namespaceSelector"),
        ({"objectSelector": {"matchLabels": 5}}, "objectSelector.matchLabels"),
        ({"matchConditions": [{"name": "a", "expression": "true"}]}, "matchConditions"),
        ({"rules": 5}, "rules"),
        ({"rules": [5]}, "rules[0]"),
        ({"rules": [rule("pods")]}, "rules[0].operations"),
        ({"rules": [rule("pods", "READ")]}, "rules[0].operations"),
        ({"rules": [rule("pods", "*", "CREATE")]}, "rules[0].operations"),
        ({"rules": [rule("a/b/c", "*")]}, "rules[0].resources"),
        ({"rules": [rule("pods", "*", scope=["*"])]}, "rules[0].scope"),
        ({"rules": [rule("pods", "*", apiVersions=[1])]}, "rules[0].apiVersions"),
        ({"clientConfig": None}, "clientConfig"),
        ({"clientConfig": {}}, "clientConfig"),
        ({"clientConfig": {**URL, "service": {}}}, "clientConfig"),
        ({"clientConfig": {"url": "http://a.b/c"}}, "clientConfig.url"),
        ({"clientConfig": {"url": "https:///c"}}, "clientConfig.url"),
        ({"clientConfig": {"url": "https://a:b@c/"}}, "clientConfig.url"),
        ({"clientConfig": {"url": "https://a/?b"}}, "clientConfig.url"),
        ({"clientConfig": {"url": "https://a:x/"}}, "clientConfig.url"),
        ({"clientConfig": {"url": 5}}, "clientConfig.url"),
        ({"clientConfig": {**URL, "caBundle": "?"}}, "clientConfig.caBundle"),
        ({"clientConfig": {"service": {"name": "a"}}}, "clientConfig.service.namespace"),
        (
            {"clientConfig": {"service": {"name": "a", "namespace": "b", "port": 0}}},
            "clientConfig.service.port",
        ),
        (
            {"clientConfig": {"service": {"name": "a", "namespace": "b", "path": "c"}}},
            "clientConfig.service.path",
        ),
    ],
)
def test_a_registration_that_makes_no_sense_is_refused(change: Object, field: str) -> None:
    value = registration("x", {"clientConfig": URL} | change)
    configurations.fill_mutating(value)
    assert [wrong.path for wrong in configurations.check(value)] == [f"webhooks[0].{field}"]


def test_names_are_unique_in_a_registration() -> None:
    value = registration("x", *[{"clientConfig": URL, "name": "a.b.c"}] * 2)
    [wrong] = configurations.check(value)
    assert (wrong.path, wrong.message[:9]) == ("webhooks[1].name", "Duplicate")


@pytest.mark.parametrize("webhooks", [5, [5], {"a": 1}])
def test_webhooks_are_a_list_of_objects(webhooks: object) -> None:
    value = {**registration("x"), "webhooks": webhooks}
    configurations.fill_mutating(value)
    assert configurations.check(value)

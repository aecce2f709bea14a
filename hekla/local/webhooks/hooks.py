"""Which webhooks are asked about a write. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hekla.domain import selector
from hekla.domain.selector import Selector
from hekla.local.kinds.registry import (
    MUTATING_WEBHOOKS,
    NAMESPACES,
    VALIDATING_WEBHOOKS,
    Kind,
    Object,
)
from hekla.local.rules.webhooks import EQUIVALENT, EVERYTHING, IF_NEEDED, IGNORE
from hekla.local.verbs.steps import DELETE, Step


@dataclass(frozen=True, slots=True)
class Service:
    """A webhook that is reached by a Service."""

    namespace: str
    name: str
    port: int
    path: str

    @property
    def host(self) -> str:
        """The name that its certificate must be for."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True, slots=True)
class Rule:
    """Some operations on some resources."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """Each a plural name and a subresource; either may be ``*``."""
    scope: str

    def matches(self, kind: Kind, operation: str, subresource: str) -> bool:
        """Whether the rule is about that operation."""
        return (
            _holds(self.operations, operation)
            and _holds(self.groups, kind.group)
            and _holds(self.versions, kind.version)
            and any(
                plural in {EVERYTHING, kind.plural} and part in {EVERYTHING, subresource}
                for plural, part in self.resources
            )
            and self.scope in {EVERYTHING, "Namespaced" if kind.namespaced else "Cluster"}
        )


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of one configuration."""

    name: str
    configuration: str
    mutates: bool
    rules: tuple[Rule, ...]
    namespaces: Selector
    objects: Selector
    target: str | Service
    """A URL or a Service."""
    bundle: str | None
    """Whose certificates are believed, PEM; None for those that this machine believes."""
    seconds: int
    ignores_failure: bool
    reinvoked: bool
    """Whether it is asked again if others changed the object after it."""
    dry_runs: bool
    """Whether it may be asked about a dry run."""
    equivalent: bool
    """Whether a rule about another version of a kind matches too."""

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        """Whether a rule matches, whatever the selectors say."""
        return any(rule.matches(kind, operation, subresource) for rule in self.rules)

    def selects(self, step: Step, namespace_labels: Mapping[str, str] | None) -> bool:
        """Whether the selectors mean the object, given the labels of its namespace if any."""
        if namespace_labels is not None and not self.namespaces.matches(namespace_labels):
            return False
        if not self.objects.requirements:
            return True
        seen = [] if step.value is None else [_labels(step.value)]
        if step.old is not None:
            seen.append(step.old.labels)
        return any(self.objects.matches(labels) for labels in seen)


def hooks_of(kind: Kind, configuration: Object) -> Iterator[Hook]:
    """The webhooks of a stored configuration, in their order."""
    for webhook in configuration.get("webhooks") or []:
        config = webhook["clientConfig"]
        yield Hook(
            name=webhook["name"],
            configuration=configuration["metadata"]["name"],
            mutates=kind is MUTATING_WEBHOOKS,
            rules=tuple(_rule(rule) for rule in webhook.get("rules") or []),
            namespaces=selector.from_object(webhook["namespaceSelector"]),
            objects=selector.from_object(webhook["objectSelector"]),
            target=config["url"] if "url" in config else _service(config["service"]),
            bundle=_bundle(config.get("caBundle")),
            seconds=webhook["timeoutSeconds"],
            ignores_failure=webhook["failurePolicy"] == IGNORE,
            reinvoked=webhook.get("reinvocationPolicy") == IF_NEEDED,
            dry_runs=webhook["sideEffects"] in {"None", "NoneOnDryRun"},
            equivalent=webhook["matchPolicy"] == EQUIVALENT,
        )


class Call(NamedTuple):
    """A webhook that is to be asked."""

    hook: Hook
    kind: Kind
    """The version in which it sees the object."""


def concerned(
    hooks: Iterable[Hook], versions: Sequence[Kind], operation: str, subresource: str
) -> tuple[Call, ...]:
    """Those of ``hooks`` that have a rule about that operation on a kind.

    ``versions`` are those in which the kind is served, the one that is written first. Webhooks
    are never asked about webhooks: nobody could mend a wrong one.
    """
    if versions[0] in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        return ()
    return tuple(
        Call(hook, kind)
        for hook in hooks
        for kind in [_seen(hook, versions, operation, subresource)]
        if kind is not None
    )


def _seen(
    hook: Hook, versions: Sequence[Kind], operation: str, subresource: str
) -> Kind | None:
    for kind in versions if hook.equivalent else versions[:1]:
        if hook.concerns(kind, operation, subresource):
            return kind
    return None


def own_labels(step: Step) -> Mapping[str, str] | None:
    """The labels that a namespace selector looks at, where the object is itself a namespace."""
    if step.kind is not NAMESPACES:
        return None
    if step.operation != DELETE and step.value is not None and not step.subresource:
        return _labels(step.value)
    return step.old.labels if step.old is not None else {}


def _holds(allowed: frozenset[str], value: str) -> bool:
    return EVERYTHING in allowed or value in allowed


def _labels(value: Object) -> Mapping[str, str]:
    labels = (value.get("metadata") or {}).get("labels")
    return labels if isinstance(labels, dict) else {}


def _rule(rule: Mapping[str, Any]) -> Rule:
    return Rule(
        frozenset(rule["operations"]),
        frozenset(rule["apiGroups"]),
        frozenset(rule["apiVersions"]),
        tuple((text.partition("/")[0], text.partition("/")[2]) for text in rule["resources"]),
        rule.get("scope", EVERYTHING),
    )


def _service(service: Mapping[str, Any]) -> Service:
    return Service(
        service["namespace"],
        service["name"],
        service.get("port", 443),
        service.get("path", "/"),
    )


def _bundle(text: str | None) -> str | None:
    return base64.b64decode(text).decode("latin-1") if text else None

"""What is special about each kind: defaults, checks, what an update may not touch.

A kind without an entry in ``RULES`` has no rules but those of every object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from hekla.domain import resources
from hekla.domain.errors import InvalidError, Violation
from hekla.local.kinds import registry
from hekla.local.kinds.registry import Object
from hekla.local.rules import budgets, claims, definitions, pods, webhooks


class Rules(NamedTuple):
    """How one kind differs from the plain object."""

    defaults: Callable[[Object], None] = lambda _: None
    """Fills in what is absent, in place."""
    check: Callable[[Object], list[Violation]] = lambda _: []
    """All that is wrong with an object by itself."""
    check_update: Callable[[Object, Object], list[Violation]] = lambda _old, _new: []
    """All that may not change from the first to the second."""
    check_status: Callable[[Object], list[Violation]] = lambda _: []
    """All that is wrong with a status that somebody writes."""
    first_status: Callable[[Object], Object | None] = lambda _: None
    """The status a new object has."""
    grace: Callable[[Object, int | None], int] = lambda _object, _asked: 0
    """The seconds between a delete and the end, given what the caller asks for."""
    finalizers: tuple[str, ...] = ()
    """What holds an object that is deleted, besides its own."""


def _namespace_defaults(namespace: Object) -> None:
    namespace.setdefault("spec", {"finalizers": ["kubernetes"]})
    name = namespace["metadata"].get("name")
    if name:
        labels = namespace["metadata"].setdefault("labels", {})
        labels["kubernetes.io/metadata.name"] = name


def _check_namespace(namespace: Object) -> list[Violation]:
    spec = namespace["spec"]
    if not isinstance(spec, dict):
        return [Violation("spec", "Invalid value: must be an object")]
    finalizers = spec.get("finalizers", [])
    if not isinstance(finalizers, list) or not all(isinstance(x, str) for x in finalizers):
        return [Violation("spec.finalizers", "Invalid value: must be a list of names")]
    return []


def _check_config_map(value: Object) -> list[Violation]:
    return _texts(value, "data") + _texts(value, "binaryData")


def _secret_defaults(secret: Object) -> None:
    secret.setdefault("type", "Opaque")
    texts = secret.pop("stringData", None)
    if isinstance(texts, dict):
        data = secret.setdefault("data", {})
        for key, text in texts.items():
            data[key] = pods.base64_text(text)


def _check_secret(secret: Object) -> list[Violation]:
    found = _texts(secret, "data")
    if not found:
        for key, value in (secret.get("data") or {}).items():
            if not pods.is_base64(value):
                found.append(Violation(f"data[{key}]", "Invalid value: must be base64"))
    return found


def _immutable_data(old: Object, new: Object) -> list[Violation]:
    if not old.get("immutable"):
        return []
    return [
        Violation(field, "Forbidden: field is immutable when `immutable` is set")
        for field in ("immutable", "data", "binaryData")
        if old.get(field) != new.get(field)
    ]


def _check_secret_update(old: Object, new: Object) -> list[Violation]:
    found = _immutable_data(old, new)
    if old.get("type") != new.get("type"):
        found.append(Violation("type", "Invalid value: field is immutable"))
    return found


def _service_defaults(service: Object) -> None:
    spec = service.setdefault("spec", {})
    if not isinstance(spec, dict):
        return
    for key, value in (("type", "ClusterIP"), ("sessionAffinity", "None")):
        spec.setdefault(key, value)
    ports = spec.get("ports")
    for port in ports if isinstance(ports, list) else []:
        if isinstance(port, dict):
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port.get("port"))


def _check_service(service: Object) -> list[Violation]:
    spec = service["spec"]
    if not isinstance(spec, dict):
        return [Violation("spec", "Invalid value: must be an object")]
    found = _texts(spec, "selector", at="spec.")
    ports = spec.get("ports") or []
    if not isinstance(ports, list):
        return [*found, Violation("spec.ports", "Invalid value: must be a list")]
    for index, port in enumerate(ports):
        number = port.get("port") if isinstance(port, dict) else None
        if not isinstance(number, int) or not 1 <= number <= 65535:
            found.append(
                Violation(
                    f"spec.ports[{index}].port",
                    f"Invalid value: {number!r}: must be between 1 and 65535, inclusive",
                )
            )
    return found


def _priority_class_defaults(value: Object) -> None:
    value.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _check_priority_class(value: Object) -> list[Violation]:
    number = value.get("value", 0)
    if not isinstance(number, int) or isinstance(number, bool):
        return [Violation("value", f"Invalid value: {number!r}: must be an integer")]
    system = value["metadata"]["name"].startswith("system-")
    if number > 1_000_000_000 and not system:
        why = "Forbidden: maximum allowed value of a user defined priority is 1000000000"
        return [Violation("value", why)]
    if value["preemptionPolicy"] not in ("PreemptLowerPriority", "Never"):
        why = f"Unsupported value: {value['preemptionPolicy']!r}"
        return [Violation("preemptionPolicy", why)]
    return []


def _check_priority_class_update(old: Object, new: Object) -> list[Violation]:
    return [
        Violation(key, "Forbidden: may not be changed in an update.")
        for key in ("value", "preemptionPolicy")
        if old.get(key, 0) != new.get(key, 0)
    ]


def _check_node_status(status: Object) -> list[Violation]:
    found = pods.objects_violations(status, "conditions")
    for field in ("capacity", "allocatable"):
        listed = status.get(field, {})
        if not isinstance(listed, dict):
            found.append(Violation(f"status.{field}", "Invalid value: must be an object"))
            continue
        try:
            resources.parse_list(listed)
        except InvalidError as error:
            found += [
                Violation(f"status.{field}[{wrong.path}]", f"Invalid value: {wrong.message}")
                for wrong in error.violations
            ]
    return found


def _texts(value: Object, field: str, *, at: str = "") -> list[Violation]:
    texts: Any = value.get(field)
    if texts is None:
        return []
    if not isinstance(texts, dict):
        return [Violation(f"{at}{field}", "Invalid value: must be an object")]
    return [
        Violation(f"{at}{field}[{key}]", f"Invalid value: {text!r}: must be a string")
        for key, text in texts.items()
        if not isinstance(text, str)
    ]


RULES: Final[Mapping[str, Rules]] = {
    registry.NAMESPACES.resource: Rules(
        defaults=_namespace_defaults,
        check=_check_namespace,
        first_status=lambda _: {"phase": "Active"},
    ),
    registry.NODES.resource: Rules(check_status=_check_node_status),
    registry.PODS.resource: Rules(
        defaults=pods.defaults,
        check=pods.check,
        check_status=pods.check_status,
        check_update=pods.check_update,
        first_status=pods.first_status,
        grace=pods.grace,
    ),
    registry.CONFIGMAPS.resource: Rules(check=_check_config_map, check_update=_immutable_data),
    registry.SECRETS.resource: Rules(
        defaults=_secret_defaults, check=_check_secret, check_update=_check_secret_update
    ),
    registry.CLAIMS.resource: Rules(
        defaults=claims.claim_defaults,
        check=claims.check_claim,
        check_update=claims.check_claim_update,
        first_status=lambda _: {"phase": "Pending"},
    ),
    registry.VOLUMES.resource: Rules(
        defaults=claims.volume_defaults,
        check=claims.check_volume,
        first_status=lambda _: {"phase": "Available"},
    ),
    registry.STORAGE_CLASSES.resource: Rules(check=claims.check_class),
    registry.DISRUPTION_BUDGETS.resource: Rules(check=budgets.check_budget),
    registry.MUTATING_WEBHOOKS.resource: Rules(
        defaults=webhooks.fill_mutating, check=webhooks.check
    ),
    registry.VALIDATING_WEBHOOKS.resource: Rules(
        defaults=webhooks.fill_validating, check=webhooks.check
    ),
    registry.SERVICES.resource: Rules(defaults=_service_defaults, check=_check_service),
    registry.PRIORITY_CLASSES.resource: Rules(
        defaults=_priority_class_defaults,
        check=_check_priority_class,
        check_update=_check_priority_class_update,
    ),
    registry.DEFINITIONS.resource: Rules(
        defaults=definitions.defaults,
        check=definitions.check,
        check_update=definitions.check_update,
        first_status=definitions.first_status,
        finalizers=(definitions.CLEANUP,),
    ),
}
PLAIN: Final = Rules()


def rules_of(resource: str) -> Rules:
    """The rules of a kind."""
    return RULES.get(resource, PLAIN)

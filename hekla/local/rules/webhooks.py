"""What a webhook configuration must look like, and what is filled in. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from hekla.domain import selector, syntax
from hekla.domain.errors import InvalidError, Violation
from hekla.local.kinds.registry import Object

IGNORE: Final = "Ignore"
IF_NEEDED: Final = "IfNeeded"
EQUIVALENT: Final = "Equivalent"
EVERYTHING: Final = "*"
DEFAULT_TIMEOUT: Final = 10
_LONGEST_TIMEOUT: Final = 30
_HTTPS: Final = 443
_OPERATIONS: Final = frozenset({EVERYTHING, "CREATE", "UPDATE", "DELETE", "CONNECT"})
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "failurePolicy": (IGNORE, "Fail"),
    "matchPolicy": ("Exact", EQUIVALENT),
    "sideEffects": ("None", "NoneOnDryRun"),
    "reinvocationPolicy": ("Never", IF_NEEDED),
}
_SCOPES: Final = (EVERYTHING, "Cluster", "Namespaced")
_SEGMENTS: Final = 3
_NAME: Final = re.compile(rf"{syntax.LABEL.pattern}(\.{syntax.LABEL.pattern})*")


def fill_validating(value: Object) -> None:
    """Fill in what an API server fills in, in place."""
    for webhook in _objects(value.get("webhooks")):
        for key, default in (
            ("failurePolicy", "Fail"),
            ("matchPolicy", EQUIVALENT),
            ("timeoutSeconds", DEFAULT_TIMEOUT),
        ):
            webhook.setdefault(key, default)
        for key in ("namespaceSelector", "objectSelector"):
            webhook.setdefault(key, {})
        for rule in _objects(webhook.get("rules")):
            rule.setdefault("scope", EVERYTHING)
        config = webhook.get("clientConfig")
        if isinstance(config, dict) and isinstance(config.get("service"), dict):
            config["service"].setdefault("port", _HTTPS)


def fill_mutating(value: Object) -> None:
    """As ``fill_validating``, for what may change objects."""
    fill_validating(value)
    for webhook in _objects(value.get("webhooks")):
        webhook.setdefault("reinvocationPolicy", "Never")


def check(value: Object) -> list[Violation]:
    """All that is wrong with a configuration of either kind."""
    listed = value.get("webhooks") or []
    if not isinstance(listed, list):
        return [Violation("webhooks", "Invalid value: must be a list")]
    found: list[Violation] = []
    names: set[str] = set()
    for index, webhook in enumerate(listed):
        path = f"webhooks[{index}]"
        if not isinstance(webhook, dict):
            found.append(Violation(path, "Invalid value: must be an object"))
            continue
        found += _check_webhook(webhook, path)
        name = webhook.get("name")
        if isinstance(name, str) and name in names:
            found.append(Violation(f"{path}.name", f"Duplicate value: {name!r}"))
        elif isinstance(name, str):
            names.add(name)
    return found


def _check_webhook(webhook: Object, path: str) -> Iterator[Violation]:
    yield from _check_name(webhook.get("name"), f"{path}.name")
    yield from _check_versions(webhook.get("admissionReviewVersions"), path)
    for key, allowed in _CHOICES.items():
        given = webhook.get(key)
        if given is None and key == "sideEffects":
            why = f"Required value: must specify one of {', '.join(allowed)}"
            yield Violation(f"{path}.{key}", why)
        elif given is not None and given not in allowed:
            why = f"Unsupported value: {given!r}: supported values: {', '.join(allowed)}"
            yield Violation(f"{path}.{key}", why)
    seconds = webhook.get("timeoutSeconds", DEFAULT_TIMEOUT)
    if not _whole(seconds) or not 1 <= seconds <= _LONGEST_TIMEOUT:
        why = f"Invalid value: {seconds!r}: the timeout value must be between 1 and 30 seconds"
        yield Violation(f"{path}.timeoutSeconds", why)
    for key in ("namespaceSelector", "objectSelector"):
        yield from _check_selector(webhook.get(key), f"{path}.{key}")
    yield from _check_rules(webhook.get("rules"), f"{path}.rules")
    yield from _check_client(webhook.get("clientConfig"), f"{path}.clientConfig")
    if webhook.get("matchConditions"):
        why = (
            "Forbidden: the local cluster does not evaluate CEL expressions: "
            "select by rules, namespaceSelector and objectSelector"
        )
        yield Violation(f"{path}.matchConditions", why)


def _check_name(name: object, path: str) -> Iterator[Violation]:
    if not isinstance(name, str) or not name:
        yield Violation(path, "Required value")
    elif _NAME.fullmatch(name) is None or name.count(".") < _SEGMENTS - 1:
        why = "should be a domain with at least three segments separated by dots"
        yield Violation(path, f"Invalid value: {name!r}: {why}")


def _check_versions(versions: object, path: str) -> Iterator[Violation]:
    path = f"{path}.admissionReviewVersions"
    if not isinstance(versions, list) or not versions:
        yield Violation(path, "Required value: must specify one of v1")
    elif "v1" not in versions:
        yield Violation(path, f"Invalid value: {versions!r}: must include v1")


def _check_selector(value: object, path: str) -> Iterator[Violation]:
    if value is None:
        return
    if not isinstance(value, dict):
        yield Violation(path, "Invalid value: must be an object")
        return
    try:
        selector.from_object(value)
    except InvalidError as error:
        for wrong in error.violations:
            yield Violation(f"{path}.{wrong.path}", f"Invalid value: {wrong.message}")


def _check_rules(rules: object, path: str) -> Iterator[Violation]:
    if rules is not None and not isinstance(rules, list):
        yield Violation(path, "Invalid value: must be a list")
        return
    for index, rule in enumerate(rules or []):
        at = f"{path}[{index}]"
        if not isinstance(rule, dict):
            yield Violation(at, "Invalid value: must be an object")
            continue
        for key in ("operations", "apiGroups", "apiVersions", "resources"):
            yield from _check_texts(rule.get(key), f"{at}.{key}")
        for operation in _texts(rule.get("operations")):
            if operation not in _OPERATIONS:
                why = f"Unsupported value: {operation!r}"
                yield Violation(f"{at}.operations", why)
        for resource in _texts(rule.get("resources")):
            if resource.count("/") > 1 or resource.startswith("/") or resource.endswith("/"):
                why = f"Invalid value: {resource!r}: must be like pods, pods/status or */*"
                yield Violation(f"{at}.resources", why)
        if rule.get("scope", EVERYTHING) not in _SCOPES:
            why = (
                f"Unsupported value: {rule['scope']!r}: supported values: {', '.join(_SCOPES)}"
            )
            yield Violation(f"{at}.scope", why)


def _check_texts(listed: object, path: str) -> Iterator[Violation]:
    if not listed:
        yield Violation(path, "Required value")
    elif not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        yield Violation(path, "Invalid value: must be a list of texts")
    elif EVERYTHING in listed and len(listed) > 1 and not path.endswith("resources"):
        why = "if '*' is present, must not specify others"
        yield Violation(path, f"Invalid value: {listed!r}: {why}")


def _check_client(config: object, path: str) -> Iterator[Violation]:
    if not isinstance(config, dict) or ("url" in config) == ("service" in config):
        yield Violation(path, "Required value: exactly one of url or service is required")
        return
    if "url" in config:
        wrong = _url_error(config["url"])
        if wrong:
            yield Violation(f"{path}.url", f"Invalid value: {config['url']!r}: {wrong}")
    else:
        yield from _check_service(config["service"], f"{path}.service")
    bundle = config.get("caBundle")
    if bundle is not None and not _is_base64(bundle):
        yield Violation(f"{path}.caBundle", "Invalid value: must be base64")


def _check_service(service: object, path: str) -> Iterator[Violation]:
    if not isinstance(service, dict):
        yield Violation(path, "Invalid value: must be an object")
        return
    for key in ("namespace", "name"):
        if not isinstance(service.get(key), str) or not service[key]:
            yield Violation(f"{path}.{key}", "Required value")
    port = service.get("port", _HTTPS)
    if not _whole(port) or not 1 <= port <= 65535:
        why = f"Invalid value: {port!r}: must be between 1 and 65535, inclusive"
        yield Violation(f"{path}.port", why)
    given = service.get("path", "/")
    if not isinstance(given, str) or not given.startswith("/"):
        yield Violation(f"{path}.path", f"Invalid value: {given!r}: must start with a '/'")


def _url_error(url: object) -> str | None:
    if not isinstance(url, str):
        return "must be a string"
    try:
        parts = urlsplit(url)
        named = parts.hostname is not None and parts.port != 0
    except ValueError as error:
        return str(error)
    for wrong, why in (
        (parts.scheme != "https", "'https' is the only allowed URL scheme"),
        (not named, "host must be specified"),
        ("@" in parts.netloc, "user information is not permitted in the URL"),
        (parts.query or parts.fragment, "queries and fragments are not permitted in the URL"),
    ):
        if wrong:
            return why
    return None


def _is_base64(text: object) -> bool:
    try:
        base64.b64decode(text if isinstance(text, str) else "?", validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _objects(listed: object) -> list[Object]:
    if not isinstance(listed, list):
        return []
    return [item for item in listed if isinstance(item, dict)]


def _texts(listed: object) -> list[str]:
    if not isinstance(listed, list):
        return []
    return [item for item in listed if isinstance(item, str)]

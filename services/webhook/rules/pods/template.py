"""A pod template as a whole."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from hekla.api.fields import shown
from hekla.domain import selector, syntax
from hekla.domain.errors import Violation
from services.webhook.rules.pods import placement, resources, volumes
from services.webhook.rules.pods.containers import Containers
from services.webhook.rules.pods.shapes import Part

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
DNS_POLICIES: Final = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
LARGEST_ANNOTATIONS: Final = 256 * 1024

_LARGEST: Final = 2**31 - 1
_MOST_SERVERS: Final = 3
_MOST_SEARCHES: Final = 32


def violations(template: Mapping[str, Any] | None, path: str) -> list[Violation]:
    """All that is wrong with ``template``, which stands at ``path``."""
    found: list[Violation] = []
    whole = Part(template or {}, path, found)
    metadata = whole.part("metadata")
    if metadata is not None:
        _metadata(metadata)
    spec = whole.part("spec")
    if spec is not None:
        _spec(spec)
    elif not found:
        whole.wrong("is required: a pod has at least one container", "spec", "containers")
    return found


def _metadata(metadata: Part) -> None:
    labels = metadata.labels("labels")
    metadata.found.extend(selector.validate_labels(labels, metadata.at("labels")))
    size = 0
    for key, value in metadata.labels("annotations").items():
        size += len(key.encode()) + len(value.encode())
        wrong = syntax.qualified_name_error(key.lower())
        if wrong is not None:
            metadata.wrong(f"{wrong}, is {shown(key)}", "annotations", key)
    if size > LARGEST_ANNOTATIONS:
        message = f"must have no more than {LARGEST_ANNOTATIONS} bytes in all, has {size}"
        metadata.wrong(message, "annotations")


def _spec(spec: Part) -> None:
    asked = Containers(spec, volumes.check(spec)).check()
    resources.of_pod(spec, asked)
    spec.one_of("restartPolicy", RESTART_POLICIES)
    spec.integer("terminationGracePeriodSeconds", minimum=0, maximum=_LARGEST)
    spec.integer("activeDeadlineSeconds", minimum=1, maximum=_LARGEST)
    spec.quantities("overhead")
    _names(spec)
    _network(spec)
    placement.check(spec)
    for gate in spec.parts("schedulingGates"):
        gate.text("name", required=True, check=syntax.qualified_name_error)
    for secret in spec.parts("imagePullSecrets"):
        secret.text("name", check=syntax.subdomain_error)
    for gate in spec.parts("readinessGates"):
        gate.text("conditionType", required=True, check=syntax.qualified_name_error)
    spec.one_of("preemptionPolicy", ("Never", "PreemptLowerPriority"))
    _context(spec)


def _names(spec: Part) -> None:
    for key in ("hostname", "subdomain"):
        spec.text(key, check=syntax.label_error)
    for key in (
        "schedulerName",
        "nodeName",
        "serviceAccountName",
        "priorityClassName",
        "runtimeClassName",
    ):
        spec.text(key, check=syntax.subdomain_error)


def _network(spec: Part) -> None:
    for key in ("hostNetwork", "hostPID", "hostIPC", "hostUsers", "shareProcessNamespace"):
        spec.boolean(key)
    if spec.value.get("hostPID") is True and spec.value.get("shareProcessNamespace") is True:
        spec.wrong("must not be true beside hostPID", "shareProcessNamespace")
    if spec.value.get("hostUsers") is False:
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            if spec.value.get(key) is True:
                spec.wrong("must not be true when hostUsers is false", key)
    spec.one_of("dnsPolicy", DNS_POLICIES)
    config = spec.part("dnsConfig")
    servers = config.value.get("nameservers") if config is not None else None
    if spec.value.get("dnsPolicy") == "None" and not servers:
        message = "is required: dnsPolicy None needs at least one"
        spec.wrong(message, "dnsConfig", "nameservers")
    if config is not None:
        _dns(config)
    for alias in spec.parts("hostAliases"):
        alias.text("ip", required=True, check=_address_error)
        alias.texts("hostnames")


def _dns(config: Part) -> None:
    config.texts("nameservers")
    config.texts("searches")
    for key, most in (("nameservers", _MOST_SERVERS), ("searches", _MOST_SEARCHES)):
        values = config.value.get(key)
        if isinstance(values, list) and len(values) > most:
            config.wrong(f"must be no more than {most}, are {len(values)}", key)
    servers = config.value.get("nameservers")
    for index, server in enumerate(servers if isinstance(servers, list) else ()):
        wrong = _address_error(server) if isinstance(server, str) else None
        if wrong is not None:
            config.wrong(f"{wrong}, is {shown(server)}", "nameservers", index)
    for option in config.parts("options"):
        option.text("name", required=True)


def _address_error(text: str) -> str | None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return "must be an IP address"
    return None


def _context(spec: Part) -> None:
    context = spec.part("securityContext")
    if context is None:
        return
    context.boolean("runAsNonRoot")
    for key in ("runAsUser", "runAsGroup", "fsGroup"):
        context.integer(key, minimum=0, maximum=_LARGEST)
    context.one_of("fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    for sysctl in context.parts("sysctls"):
        sysctl.text("name", required=True)
        sysctl.text("value")

"""Probes and hooks: what Kubernetes asks of a container while it lives."""

from __future__ import annotations

from typing import Final

from hekla.api.fields import shown
from services.webhook.rules.pods.shapes import Part, port_name_error

_LARGEST: Final = 2**31 - 1
_LONGEST_PORT: Final = 65535
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOKS: Final = ("exec", "httpGet", "tcpSocket", "sleep")


def check(container: Part, *, runs_once: bool) -> None:
    """Check what is asked of a container; an init container that ends is asked nothing."""
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.part(key)
        if probe is None:
            continue
        if runs_once:
            container.wrong("may not be set for an init container that ends", key)
            continue
        _probe(probe, only_once=key != "readinessProbe")
    lifecycle = container.part("lifecycle")
    if lifecycle is None:
        return
    if runs_once:
        container.wrong("may not be set for an init container that ends", "lifecycle")
        return
    for key in ("postStart", "preStop"):
        hook = lifecycle.part(key)
        if hook is not None:
            _handler(hook, _HOOKS)


def _probe(probe: Part, *, only_once: bool) -> None:
    _handler(probe, _HANDLERS)
    probe.integer("initialDelaySeconds", minimum=0, maximum=_LARGEST)
    # Zero stands for the default in these.
    for key in ("timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        probe.integer(key, minimum=0, maximum=_LARGEST)
    if only_once and probe.value.get("successThreshold") not in (None, 0, 1):
        probe.wrong("must be 1 for liveness and start", "successThreshold")
    probe.integer("terminationGracePeriodSeconds", minimum=1, maximum=_LARGEST)
    if not only_once and probe.value.get("terminationGracePeriodSeconds") is not None:
        message = "may not be set for readiness, which ends nothing"
        probe.wrong(message, "terminationGracePeriodSeconds")


def _handler(holder: Part, known: tuple[str, ...]) -> None:
    given = [key for key in known if holder.value.get(key) is not None]
    if len(given) != 1:
        has = ", ".join(given) or "none"
        holder.wrong(f"must have one of {', '.join(known)}; has {has}")
    for key in given:
        part = holder.part(key)
        if part is None:
            continue
        if key == "exec":
            part.texts("command")
            if not part.value.get("command"):
                part.wrong("is required", "command")
        elif key == "sleep":
            part.integer("seconds", minimum=1, maximum=_LARGEST, required=True)
        elif key == "grpc":
            part.integer("port", minimum=1, maximum=_LONGEST_PORT, required=True)
        else:
            _port(part)
            if key == "httpGet":
                part.one_of("scheme", ("HTTP", "HTTPS"))
                part.text("path")
                for header in part.parts("httpHeaders"):
                    header.text("name", required=True)
                    header.text("value")


def _port(part: Part) -> None:
    value = part.value.get("port")
    if isinstance(value, str):
        wrong = port_name_error(value)
        if wrong is not None:
            part.wrong(f"{wrong}, is {shown(value)}", "port")
    else:
        part.integer("port", minimum=1, maximum=_LONGEST_PORT, required=True)

"""Containers of a pod: names, images, environment, ports, mounts, resources, probes."""

from __future__ import annotations

from typing import Final

from hekla.api.fields import shown
from hekla.domain import syntax
from services.webhook.rules.pods import probes, resources, volumes
from services.webhook.rules.pods.resources import Amounts
from services.webhook.rules.pods.shapes import Part, port_name_error

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_SOURCES: Final = (
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
)
_LARGEST_PORT: Final = 65535
_LARGEST: Final = 2**31 - 1


class Containers:
    """All containers of one pod, which share names and the ports of its node."""

    def __init__(self, spec: Part, volume_names: frozenset[str]) -> None:
        self._spec = spec
        self._volumes = volume_names
        self._names: dict[str, str] = {}
        self._host_ports: dict[tuple[str, str, int], str] = {}
        self._on_host_network = spec.value.get("hostNetwork") is True

    def check(self) -> list[tuple[Amounts, Amounts]]:
        """Check them; requests and limits of those that run together."""
        spec, asked = self._spec, []
        if spec.value.get("containers") in (None, []):
            spec.wrong("is required: a pod has at least one container", "containers")
        for container in spec.parts("containers"):
            if container.value.get("restartPolicy") not in (None, ""):
                container.wrong("may be set for init containers only", "restartPolicy")
            asked.append(self._check(container, shares_ports=True, runs_once=False))
        for container in spec.parts("initContainers"):
            container.one_of("restartPolicy", ("Always",))
            sidecar = container.value.get("restartPolicy") == "Always"
            amounts = self._check(container, shares_ports=sidecar, runs_once=not sidecar)
            if sidecar:
                asked.append(amounts)
        if spec.value.get("ephemeralContainers"):
            spec.wrong("must be empty in a template", "ephemeralContainers")
        return asked

    def _check(
        self, container: Part, *, shares_ports: bool, runs_once: bool
    ) -> tuple[Amounts, Amounts]:
        self._name(container)
        image = container.text("image", required=True)
        if image != image.strip():
            container.wrong(f"must not begin or end with blanks, is {shown(image)}", "image")
        container.one_of("imagePullPolicy", PULL_POLICIES)
        container.one_of("terminationMessagePolicy", _MESSAGE_POLICIES)
        container.texts("command")
        container.texts("args")
        container.text("workingDir")
        for key in ("stdin", "stdinOnce", "tty"):
            container.boolean(key)
        _environment(container)
        self._ports(container, shared=shares_ports)
        volumes.check_mounts(container, self._volumes)
        _security(container)
        probes.check(container, runs_once=runs_once)
        return resources.of_container(container)

    def _name(self, container: Part) -> None:
        name = container.text("name", required=True, check=syntax.label_error)
        if name in self._names:
            container.wrong(f"is the name of {self._names[name]} too", "name")
        elif name:
            self._names[name] = container.path

    def _ports(self, container: Part, *, shared: bool) -> None:
        names: set[str] = set()
        for port in container.parts("ports"):
            port.integer("containerPort", minimum=1, maximum=_LARGEST_PORT, required=True)
            port.integer("hostPort", minimum=0, maximum=_LARGEST_PORT)
            port.one_of("protocol", PROTOCOLS)
            name = port.text("name", check=port_name_error)
            if name and name in names:
                port.wrong(f"is the name of another port too: {shown(name)}", "name")
            names.add(name)
            self._host_port(port, shared=shared)

    def _host_port(self, port: Part, *, shared: bool) -> None:
        inside, outside = port.value.get("containerPort"), port.value.get("hostPort")
        if not isinstance(outside, int) or isinstance(outside, bool) or not outside:
            return
        if self._on_host_network and outside != inside:
            message = f"must be the containerPort on the host's network, {shown(inside)}"
            port.wrong(f"{message}; is {outside}", "hostPort")
        protocol = port.text("protocol") or "TCP"
        key = (port.text("hostIP"), protocol, outside)
        if shared and key in self._host_ports:
            port.wrong(f"is taken by {self._host_ports[key]}: {outside}", "hostPort")
        elif shared:
            self._host_ports[key] = port.path


def _environment(container: Part) -> None:
    for variable in container.parts("env"):
        variable.text("name", required=True, check=_variable_error)
        value = variable.text("value")
        source = variable.part("valueFrom")
        if source is None:
            continue
        if value:
            variable.wrong("must be empty beside a valueFrom", "value")
        given = [key for key in _SOURCES if source.value.get(key) is not None]
        if len(given) != 1:
            source.wrong(f"must have one of {', '.join(_SOURCES)}; has {len(given)}")
        for key in given:
            _reference(source, key)
    for source in container.parts("envFrom"):
        given = [key for key in ("configMapRef", "secretRef") if source.value.get(key)]
        if len(given) != 1:
            source.wrong(f"must have one of configMapRef, secretRef; has {len(given)}")
        for key in given:
            part = source.part(key)
            if part is not None:
                part.text("name", required=True, check=syntax.subdomain_error)
        source.text("prefix", check=_variable_error)


def _reference(source: Part, key: str) -> None:
    part = source.part(key)
    if part is None:
        return
    if key == "fieldRef":
        part.text("fieldPath", required=True)
    elif key == "resourceFieldRef":
        part.text("resource", required=True)
    elif key in {"configMapKeyRef", "secretKeyRef"}:
        part.text("name", required=True, check=syntax.subdomain_error)
        part.text("key", required=True)


def _variable_error(name: str) -> str | None:
    printable = name.isascii() and name.isprintable()
    return None if printable and "=" not in name else "must be printable ASCII without '='"


def _security(container: Part) -> None:
    context = container.part("securityContext")
    if context is None:
        return
    for key in (
        "privileged",
        "allowPrivilegeEscalation",
        "readOnlyRootFilesystem",
        "runAsNonRoot",
    ):
        context.boolean(key)
    for key in ("runAsUser", "runAsGroup"):
        context.integer(key, minimum=0, maximum=_LARGEST)
    capabilities = context.part("capabilities")
    if capabilities is not None:
        capabilities.texts("add")
        capabilities.texts("drop")
    given = context.value
    if given.get("privileged") is True and given.get("allowPrivilegeEscalation") is False:
        message = "must not be false for a privileged container"
        context.wrong(message, "allowPrivilegeEscalation")

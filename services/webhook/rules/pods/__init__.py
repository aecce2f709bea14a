"""Rules for pod templates: what decides whether their pods can ever be made.

Kubernetes checks far more when it gets the pod; what would fail there for ever is better
said before the job waits in a queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hekla.api.fields import shown
from hekla.domain import paths, selector, syntax
from hekla.domain.errors import Violation
from hekla.domain.resources import CPU, EPHEMERAL_STORAGE, HUGEPAGES, MEMORY
from services.webhook.rules.pods.shapes import Part

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
DNS_POLICIES: Final = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
LARGEST_ANNOTATIONS: Final = 256 * 1024

_LARGEST = 2**31 - 1
_DIVISIBLE: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, "storage"})


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


def whole_cores(template: Mapping[str, Any] | None, path: str) -> Iterator[Violation]:
    """Containers that do not ask for whole cores, as placement by NUMA node needs."""
    spec = Part(template or {}, path, []).part("spec")
    for key in ("containers", "initContainers"):
        for container in spec.parts(key) if spec is not None else ():
            resources = container.part("resources")
            asked = "requests" if resources and resources.value.get("requests") else "limits"
            amounts = resources.quantities(asked) if resources is not None else {}
            cores = amounts.get(CPU, 0)
            if cores <= 0 or cores % 1:
                message = "must be a whole number of cores, not 0, for a topologyPolicy"
                yield Violation(container.at("resources", asked, CPU), message)


def is_integral(resource: str) -> bool:
    """Whether only whole amounts of the resource exist."""
    return resource not in _DIVISIBLE and not resource.startswith(HUGEPAGES)


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
    volumes = _volumes(spec)
    names: dict[str, str] = {}
    if spec.value.get("containers") in (None, []):
        spec.wrong("is required: a pod has at least one container", "containers")
    for container in spec.parts("containers"):
        _container(container, names, volumes)
        if container.value.get("restartPolicy") not in (None, ""):
            container.wrong("may be set for init containers only", "restartPolicy")
    for container in spec.parts("initContainers"):
        _container(container, names, volumes)
        container.one_of("restartPolicy", ("Always",))
    if spec.value.get("ephemeralContainers"):
        spec.wrong("must be empty in a template", "ephemeralContainers")
    _pod_fields(spec)


def _pod_fields(spec: Part) -> None:
    spec.one_of("restartPolicy", RESTART_POLICIES)
    spec.one_of("dnsPolicy", DNS_POLICIES)
    spec.integer("terminationGracePeriodSeconds", minimum=0, maximum=_LARGEST)
    spec.integer("activeDeadlineSeconds", minimum=1, maximum=_LARGEST)
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        spec.boolean(key)
    for key in ("hostname", "subdomain"):
        spec.text(key, check=syntax.label_error)
    for key in ("schedulerName", "nodeName", "serviceAccountName", "priorityClassName"):
        spec.text(key, check=syntax.subdomain_error)
    labels = spec.labels("nodeSelector")
    spec.found.extend(selector.validate_labels(labels, spec.at("nodeSelector")))
    spec.part("affinity")
    spec.part("securityContext")
    for toleration in spec.parts("tolerations"):
        _toleration(toleration)
    for key in ("topologySpreadConstraints", "imagePullSecrets", "schedulingGates"):
        for _ in spec.parts(key):
            pass
    spec.quantities("overhead")
    _resources(spec)


def _toleration(toleration: Part) -> None:
    key = toleration.text("key", check=syntax.qualified_name_error)
    toleration.one_of("operator", ("Equal", "Exists", "Lt", "Gt"))
    toleration.one_of("effect", ("NoSchedule", "PreferNoSchedule", "NoExecute"))
    value = toleration.text("value")
    operator = toleration.value.get("operator")
    if not key and operator != "Exists":
        toleration.wrong("must be Exists when there is no key", "operator")
    if operator == "Exists" and value:
        toleration.wrong(f"must be empty with Exists, is {shown(value)}", "value")


def _container(container: Part, names: dict[str, str], volumes: frozenset[str]) -> None:
    name = container.text("name", required=True, check=syntax.label_error)
    if name in names:
        container.wrong(f"is the name of {names[name]} too", "name")
    elif name:
        names[name] = container.path
    image = container.text("image", required=True)
    if image != image.strip():
        container.wrong(f"must not begin or end with blanks, is {shown(image)}", "image")
    container.one_of("imagePullPolicy", PULL_POLICIES)
    container.texts("command")
    container.texts("args")
    container.text("workingDir")
    for variable in container.parts("env"):
        variable.text("name", required=True, check=_variable_error)
        variable.text("value")
    _ports(container)
    for mount in container.parts("volumeMounts"):
        volume = mount.text("name", required=True)
        mount.text("mountPath", required=True)
        if volume and volume not in volumes:
            mount.wrong(f"must be the name of a volume of the pod, is {shown(volume)}", "name")
    _resources(container)


def _variable_error(name: str) -> str | None:
    printable = name.isascii() and name.isprintable()
    return None if printable and "=" not in name else "must be printable ASCII without '='"


def _ports(container: Part) -> None:
    names: set[str] = set()
    for port in container.parts("ports"):
        port.integer("containerPort", minimum=1, maximum=65535, required=True)
        port.integer("hostPort", minimum=0, maximum=65535)
        port.one_of("protocol", PROTOCOLS)
        name = port.text("name", check=_port_name_error)
        if name and name in names:
            port.wrong(f"is the name of another port too: {shown(name)}", "name")
        names.add(name)


def _port_name_error(name: str) -> str | None:
    fits = len(name) <= 15 and syntax.label_error(name) is None and "--" not in name
    if fits and any(character.isalpha() for character in name):
        return None
    return "must be 15 or fewer lower case letters, digits and '-', with a letter among them"


def _volumes(spec: Part) -> frozenset[str]:
    names: set[str] = set()
    for volume in spec.parts("volumes"):
        name = volume.text("name", required=True, check=syntax.label_error)
        if name and name in names:
            volume.wrong(f"is the name of another volume too: {shown(name)}", "name")
        names.add(name)
    return frozenset(names)


def _resources(holder: Part) -> None:
    resources = holder.part("resources")
    if resources is None:
        return
    limits = resources.quantities("limits")
    requests = resources.quantities("requests")
    for key, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            wrong = syntax.qualified_name_error(name)
            if wrong is not None:
                resources.wrong(f"{wrong}, is {shown(name)}", key, name)
            elif is_integral(name) and amount % 1:
                resources.wrong(f"must be a whole number, is {amount}", key, name)
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is not None and amount > limit:
            path = paths.at("limits", name)
            values = resources.value
            message = f"must be <= {path}, which is {values['limits'][name]}"
            shown_amount = shown(values["requests"][name])
            resources.wrong(f"{message}; is {shown_amount}", "requests", name)

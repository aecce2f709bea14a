"""The API server's side of pods: defaults, checks, binding. Pure."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Any, Final

from hekla.domain import resources, syntax, timestamps
from hekla.domain.errors import InvalidError, Violation
from hekla.local.kinds.registry import Object
from hekla.local.rules import volumes

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_GRACE: Final = 30
_TEXTS: Final = ("nodeName", "schedulerName", "priorityClassName", "serviceAccountName")
_MUTABLE: Final = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
FINISHED: Final = frozenset({"Succeeded", "Failed"})


def defaults(pod: Object) -> None:
    """Fill in what the API server fills in."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return
    _leave_out_nulls(spec)
    for key, value in (
        ("restartPolicy", "Always"),
        ("terminationGracePeriodSeconds", _GRACE),
        ("dnsPolicy", "ClusterFirst"),
        ("schedulerName", "default-scheduler"),
        ("enableServiceLinks", True),
    ):
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})
    volumes.defaults(spec)
    for container in _all_containers(spec):
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        container.setdefault("imagePullPolicy", _pull_policy(container.get("image")))
        asked = container.setdefault("resources", {})
        if isinstance(asked, dict) and isinstance(asked.get("limits"), dict):
            requests = asked.get("requests") or {}
            if isinstance(requests, dict):
                asked["requests"] = asked["limits"] | requests


def _leave_out_nulls(value: object) -> None:
    """Null is absent, to whoever reads it as a pod."""
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
    for item in value.values() if isinstance(value, dict) else ():
        _leave_out_nulls(item)
    for item in value if isinstance(value, list) else ():
        _leave_out_nulls(item)


def first_status(pod: Object) -> Object:
    """The status of a new pod."""
    return {"phase": "Pending", "qosClass": _qos_class(pod["spec"])}


def grace(pod: Object, asked: int | None) -> int:
    """How long a pod may go on after a delete: not at all unless it runs somewhere."""
    if not pod["spec"].get("nodeName") or pod.get("status", {}).get("phase") in FINISHED:
        return 0
    own: int = pod["spec"].get("terminationGracePeriodSeconds", _GRACE)
    return max(own if asked is None else asked, 0)


def check(pod: Object) -> list[Violation]:
    """All that is wrong with a pod."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return [Violation("spec", "Required value")]
    found = _check_scalars(spec)
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        containers = spec.get(field)
        if not containers and field == "containers":
            found.append(Violation("spec.containers", "Required value"))
        elif containers is not None and not isinstance(containers, list):
            found.append(Violation(f"spec.{field}", "Invalid value: must be a list"))
        else:
            for index, container in enumerate(containers or []):
                found += _check_container(container, f"spec.{field}[{index}]", names)
                found += _check_policy(
                    container, f"spec.{field}[{index}]", init=field[0] == "i"
                )
    found += volumes.check(spec)
    return found or _check_request(spec)


def check_status(status: Object) -> list[Violation]:
    """All that is wrong with a status, as far as anybody here reads it."""
    found = []
    if not isinstance(status.get("phase", ""), str):
        found.append(Violation("status.phase", "Invalid value: must be a string"))
    if not isinstance(status.get("podIP", ""), str):
        found.append(Violation("status.podIP", "Invalid value: must be a string"))
    return (
        found
        + objects_violations(status, "conditions")
        + objects_violations(status, "containerStatuses")
    )


def objects_violations(status: Object, field: str) -> list[Violation]:
    """What keeps a field of a status from being a list of objects."""
    listed = status.get(field, [])
    if isinstance(listed, list) and all(isinstance(item, dict) for item in listed):
        return []
    return [Violation(f"status.{field}", "Invalid value: must be a list of objects")]


def check_update(old: Object, new: Object) -> list[Violation]:
    """A pod's spec stays as it is, but for a few fields."""
    if _fixed(old["spec"]) == _fixed(new["spec"]):
        return []
    why = (
        "Forbidden: pod updates may not change fields other than "
        "`spec.containers[*].image`, `spec.initContainers[*].image`, "
        "`spec.activeDeadlineSeconds`, `spec.tolerations` and `spec.schedulingGates`"
    )
    return [Violation("spec", why)]


def bound(pod: Object, node: str, annotations: Object, *, now: datetime) -> Object:
    """The pod once it has its node."""
    fresh = {**pod, "spec": {**pod["spec"], "nodeName": node}}
    if annotations:
        metadata = dict(pod["metadata"])
        metadata["annotations"] = metadata.get("annotations", {}) | annotations
        fresh["metadata"] = metadata
    status = dict(pod.get("status", {}))
    status["conditions"] = with_condition(
        status.get("conditions", []), "PodScheduled", value=True, now=now
    )
    fresh["status"] = status
    return fresh


def with_condition(
    conditions: list[Object], type_: str, *, value: bool, now: datetime, reason: str = ""
) -> list[Object]:
    """``conditions`` with that one set; its time moves only if its value does."""
    fresh: Object = {
        "type": type_,
        "status": "True" if value else "False",
        "lastProbeTime": None,
        "lastTransitionTime": timestamps.to_text(now),
    }
    if reason:
        fresh["reason"] = reason
    kept = []
    for condition in conditions:
        if condition.get("type") != type_:
            kept.append(condition)
        elif condition.get("status") == fresh["status"]:
            fresh["lastTransitionTime"] = condition.get("lastTransitionTime")
    return [*kept, fresh]


def base64_text(text: object) -> str:
    """``text`` as the data of a secret."""
    return base64.b64encode(str(text).encode()).decode()


def is_base64(text: str) -> bool:
    """Whether ``text`` can be the data of a secret."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _all_containers(spec: Object) -> list[Object]:
    found = []
    for field in ("initContainers", "containers"):
        containers = spec.get(field)
        if isinstance(containers, list):
            found += [item for item in containers if isinstance(item, dict)]
    return found


def _pull_policy(image: object) -> str:
    _, _, last = str(image).rpartition("/")
    latest = ":" not in last or last.endswith(":latest")
    return "Always" if latest else "IfNotPresent"


def _qos_class(spec: Object) -> str:
    guaranteed, asks = True, False
    for container in _all_containers(spec):
        asked = container.get("resources") or {}
        requests, limits = asked.get("requests") or {}, asked.get("limits") or {}
        asks = asks or any(name in requests or name in limits for name in ("cpu", "memory"))
        guaranteed = guaranteed and all(
            name in limits and requests.get(name) == limits[name] for name in ("cpu", "memory")
        )
    return "Guaranteed" if guaranteed else "Burstable" if asks else "BestEffort"


def _check_scalars(spec: Object) -> list[Violation]:
    found = []
    policy = spec["restartPolicy"]
    if policy not in _RESTART_POLICIES:
        supported = ", ".join(f'"{known}"' for known in _RESTART_POLICIES)
        why = f"Unsupported value: {policy!r}: supported values: {supported}"
        found.append(Violation("spec.restartPolicy", why))
    seconds = spec["terminationGracePeriodSeconds"]
    if not _whole(seconds) or seconds < 0:
        found.append(
            Violation(
                "spec.terminationGracePeriodSeconds",
                f"Invalid value: {seconds!r}: must be greater than or equal to 0",
            )
        )
    deadline = spec.get("activeDeadlineSeconds", 1)
    if not _whole(deadline) or not 1 <= deadline < 2**31:
        why = f"Invalid value: {deadline!r}: must be between 1 and 2147483647, inclusive"
        found.append(Violation("spec.activeDeadlineSeconds", why))
    for field in ("hostname", "subdomain"):
        name = spec.get(field)
        if isinstance(name, str) and name and (wrong := syntax.label_error(name)):
            found.append(Violation(f"spec.{field}", f"Invalid value: {name!r}: {wrong}"))
    for field in (*_TEXTS, "hostname", "subdomain"):
        if not isinstance(spec.get(field, ""), str):
            found.append(
                Violation(f"spec.{field}", f"Invalid value: {spec[field]!r}: must be a string")
            )
    if not _all_texts(spec.get("nodeSelector", {})):
        found.append(
            Violation("spec.nodeSelector", "Invalid value: must be an object of strings")
        )
    return found


def _check_request(spec: Object) -> list[Violation]:
    try:
        resources.pod_request(spec)
    except (InvalidError, AttributeError, TypeError) as error:
        return [Violation("spec.overhead", f"Invalid value: {error}")]
    return []


def _check_policy(container: object, path: str, *, init: bool) -> list[Violation]:
    """Only an init container may have a restart policy of its own, which makes it a sidecar."""
    policy = container.get("restartPolicy") if isinstance(container, dict) else None
    if policy is None:
        return []
    if not init:
        why = "Forbidden: may not be set for non-init containers"
        return [Violation(f"{path}.restartPolicy", why)]
    if policy != "Always":
        why = f'Unsupported value: {policy!r}: supported values: "Always"'
        return [Violation(f"{path}.restartPolicy", why)]
    return []


def _check_container(container: object, path: str, names: set[str]) -> list[Violation]:
    if not isinstance(container, dict):
        return [Violation(path, "Invalid value: must be an object")]
    found = []
    name = container.get("name", "")
    wrong = syntax.label_error(name) if isinstance(name, str) else "must be a string"
    if name == "":
        found.append(Violation(f"{path}.name", "Required value"))
    elif wrong:
        found.append(Violation(f"{path}.name", f"Invalid value: {name!r}: {wrong}"))
    elif name in names:
        found.append(Violation(f"{path}.name", f"Duplicate value: {name!r}"))
    else:
        names.add(name)
    if not isinstance(container.get("image"), str) or not container["image"]:
        found.append(Violation(f"{path}.image", "Required value"))
    for field in ("command", "args"):
        words = container.get(field, [])
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            found.append(Violation(f"{path}.{field}", "Invalid value: must be strings"))
    if not isinstance(container.get("workingDir", ""), str):
        found.append(Violation(f"{path}.workingDir", "Invalid value: must be a string"))
    found += _check_env(container.get("env", []), f"{path}.env")
    found += _check_env_from(container.get("envFrom", []), f"{path}.envFrom")
    return found + _check_resources(container["resources"], f"{path}.resources")


def _check_env(variables: object, path: str) -> list[Violation]:
    if not isinstance(variables, list):
        return [Violation(path, "Invalid value: must be a list")]
    found = []
    for index, variable in enumerate(variables):
        at = f"{path}[{index}]"
        name = variable.get("name") if isinstance(variable, dict) else None
        if not isinstance(name, str) or not name:
            found.append(Violation(f"{at}.name", "Required value"))
        elif "=" in name or "\0" in name:
            found.append(Violation(f"{at}.name", f"Invalid value: {name!r}: no '=' allowed"))
        elif not isinstance(variable.get("value", ""), str):
            why = f"Invalid value: {variable['value']!r}: must be a string"
            found.append(Violation(f"{at}.value", why))
        elif not isinstance(variable.get("valueFrom", {}), dict):
            found.append(Violation(f"{at}.valueFrom", "Invalid value: must be an object"))
        elif variable.get("value") and variable.get("valueFrom"):
            why = "Invalid value: may not be specified when `value` is not empty"
            found.append(Violation(f"{at}.valueFrom", why))
    return found


def _check_env_from(sources: object, path: str) -> list[Violation]:
    if not isinstance(sources, list):
        return [Violation(path, "Invalid value: must be a list")]
    found = []
    for index, source in enumerate(sources):
        at = f"{path}[{index}]"
        if not isinstance(source, dict) or not isinstance(source.get("prefix", ""), str):
            found.append(Violation(at, "Invalid value: must be an object with a text prefix"))
            continue
        kinds = [kind for kind in ("configMapRef", "secretRef") if kind in source]
        if len(kinds) != 1:
            why = "Invalid value: must specify one of: `configMapRef` or `secretRef`"
            found.append(Violation(at, why))
        elif not isinstance(source[kinds[0]], dict) or not isinstance(
            source[kinds[0]].get("name"), str
        ):
            found.append(Violation(f"{at}.{kinds[0]}.name", "Required value"))
    return found


def _check_resources(asked: object, path: str) -> list[Violation]:
    if not isinstance(asked, dict):
        return [Violation(path, "Invalid value: must be an object")]
    amounts: dict[str, dict[str, int]] = {}
    found = []
    for field in ("requests", "limits"):
        listed = asked.get(field, {})
        if not isinstance(listed, dict):
            found.append(Violation(f"{path}.{field}", "Invalid value: must be an object"))
            continue
        try:
            amounts[field] = resources.parse_list(listed)
        except InvalidError as error:
            found += [
                Violation(f"{path}.{field}[{wrong.path}]", f"Invalid value: {wrong.message}")
                for wrong in error.violations
            ]
    for field, values in amounts.items():
        for name, amount in values.items():
            if amount < 0:
                why = f"Invalid value: {asked[field][name]!r}: must be at least 0"
                found.append(Violation(f"{path}.{field}[{name}]", why))
    limits = amounts.get("limits", {})
    for name, amount in amounts.get("requests", {}).items():
        if amount > limits.get(name, amount):
            why = (
                f"Invalid value: {asked['requests'][name]!r}: must be less than or equal to "
                f"{name} limit of {asked['limits'][name]}"
            )
            found.append(Violation(f"{path}.requests", why))
    return found


def _fixed(spec: Object) -> Object:
    fixed: dict[str, Any] = {key: spec[key] for key in spec if key not in _MUTABLE}
    for field in ("initContainers", "containers"):
        if isinstance(fixed.get(field), list):
            fixed[field] = [
                {**item, "image": None} if isinstance(item, dict) else item
                for item in fixed[field]
            ]
    return fixed


def _all_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

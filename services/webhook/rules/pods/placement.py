"""Where a pod may run: node selectors, affinity, tolerations, spreading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hekla.api.fields import shown
from hekla.domain import selector, syntax
from hekla.domain.errors import InvalidError
from services.webhook.rules.pods.shapes import Part

_NODE_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_LARGEST: Final = 2**31 - 1


def check(spec: Part) -> None:
    """Check all that a pod says of where it may run."""
    labels = spec.labels("nodeSelector")
    spec.found.extend(selector.validate_labels(labels, spec.at("nodeSelector")))
    affinity = spec.part("affinity")
    if affinity is not None:
        _affinity(affinity)
    for toleration in spec.parts("tolerations"):
        _toleration(toleration)
    _spreading(spec)


def _affinity(affinity: Part) -> None:
    node = affinity.part("nodeAffinity")
    if node is not None:
        required = node.part(_REQUIRED)
        if required is not None:
            if not required.value.get("nodeSelectorTerms"):
                required.wrong("is required: at least one term", "nodeSelectorTerms")
            for term in required.parts("nodeSelectorTerms"):
                _node_term(term)
        for weighted in node.parts(_PREFERRED):
            _weighted(weighted, "preference", _node_term)
    for key in ("podAffinity", "podAntiAffinity"):
        pods = affinity.part(key)
        if pods is None:
            continue
        for term in pods.parts(_REQUIRED):
            _pod_term(term)
        for weighted in pods.parts(_PREFERRED):
            _weighted(weighted, "podAffinityTerm", _pod_term)


def _weighted(weighted: Part, key: str, check_term: Callable[[Part], None]) -> None:
    weighted.integer("weight", minimum=1, maximum=100, required=True)
    term = weighted.part(key)
    if term is not None:
        check_term(term)
    elif weighted.value.get(key) is None:
        weighted.wrong("is required", key)


def _node_term(term: Part) -> None:
    for expression in term.parts("matchExpressions"):
        expression.text("key", required=True, check=syntax.qualified_name_error)
        _operator(expression)
    for expression in term.parts("matchFields"):
        key = expression.text("key", required=True)
        if key and key != "metadata.name":
            expression.wrong(f"must be metadata.name, is {shown(key)}", "key")
        expression.one_of("operator", ("In", "NotIn"))
        values = expression.value.get("values")
        if not isinstance(values, list) or len(values) != 1:
            expression.wrong("must have one value", "values")


def _operator(expression: Part) -> None:
    operator = expression.text("operator", required=True)
    expression.texts("values")
    values = expression.value.get("values")
    count = len(values) if isinstance(values, list) else 0
    if operator and operator not in _NODE_OPERATORS:
        message = f"must be one of {', '.join(_NODE_OPERATORS)}, is {shown(operator)}"
        expression.wrong(message, "operator")
    elif operator in {"In", "NotIn"} and not count:
        expression.wrong(f"must not be empty with {operator}", "values")
    elif operator in {"Exists", "DoesNotExist"} and count:
        expression.wrong(f"must be empty with {operator}", "values")
    elif operator in {"Gt", "Lt"} and not (count == 1 and values and _is_integer(values[0])):
        expression.wrong(f"must be one integer with {operator}", "values")


def _is_integer(value: object) -> bool:
    return isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) <= 20


def _pod_term(term: Part) -> None:
    term.text("topologyKey", required=True, check=syntax.qualified_name_error)
    _labels(term, "labelSelector")
    _labels(term, "namespaceSelector")
    term.texts("namespaces")
    term.texts("matchLabelKeys")


def _labels(holder: Part, key: str) -> None:
    part = holder.part(key)
    if part is None:
        return
    try:
        selector.from_object(part.value)
    except InvalidError as error:
        for violation in error.violations:
            place = f"{part.path}.{violation.path}"
            holder.found.append(type(violation)(place, violation.message))


def _toleration(toleration: Part) -> None:
    key = toleration.text("key", check=syntax.qualified_name_error)
    toleration.one_of("operator", ("Equal", "Exists", "Lt", "Gt"))
    toleration.one_of("effect", _EFFECTS)
    value = toleration.text("value")
    operator = toleration.value.get("operator")
    if not key and operator != "Exists":
        toleration.wrong("must be Exists when there is no key", "operator")
    if operator == "Exists" and value:
        toleration.wrong(f"must be empty with Exists, is {shown(value)}", "value")
    elif operator in {"Lt", "Gt"}:
        if not _is_integer(value):
            toleration.wrong(f"must be an integer with {operator}", "value")
    else:
        wrong = syntax.label_value_error(value)
        if wrong is not None:
            toleration.wrong(f"{wrong}, is {shown(value)}", "value")
    toleration.integer("tolerationSeconds", minimum=-_LARGEST, maximum=_LARGEST)
    seconds = toleration.value.get("tolerationSeconds")
    if seconds is not None and toleration.value.get("effect") != "NoExecute":
        toleration.wrong("must be NoExecute when there are tolerationSeconds", "effect")


def _spreading(spec: Part) -> None:
    seen: set[tuple[str, str]] = set()
    for constraint in spec.parts("topologySpreadConstraints"):
        constraint.integer("maxSkew", minimum=1, maximum=_LARGEST, required=True)
        key = constraint.text("topologyKey", required=True, check=syntax.qualified_name_error)
        when = constraint.text("whenUnsatisfiable", required=True)
        constraint.one_of("whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"))
        _labels(constraint, "labelSelector")
        constraint.integer("minDomains", minimum=1, maximum=_LARGEST)
        if constraint.value.get("minDomains") is not None and when != "DoNotSchedule":
            constraint.wrong("needs whenUnsatisfiable: DoNotSchedule", "minDomains")
        if key and (key, when) in seen:
            constraint.wrong(f"is there twice with {when}: {shown(key)}", "topologyKey")
        seen.add((key, when))

"""What containers and pods may ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from hekla.api.fields import shown
from hekla.domain import paths, quantity, syntax
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.resources import CPU, EPHEMERAL_STORAGE, HUGEPAGES, MEMORY
from services.webhook.rules.pods.shapes import Part

Amounts = Mapping[str, Fraction]

_DIVISIBLE: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, "storage"})
_OF_CONTAINERS: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
_OF_PODS: Final = frozenset({CPU, MEMORY})


def is_integral(resource: str) -> bool:
    """Whether only whole amounts of the resource exist."""
    return resource not in _DIVISIBLE and not resource.startswith(HUGEPAGES)


def of_container(container: Part) -> tuple[Amounts, Amounts]:
    """Check a container's resources; its requests and limits."""
    resources = container.part("resources")
    if resources is None:
        return {}, {}
    requests, limits = _lists(resources)
    for key, amounts in (("limits", limits), ("requests", requests)):
        for name in amounts:
            odd = name not in _OF_CONTAINERS and "/" not in name and not _is_huge(name)
            if odd and syntax.qualified_name_error(name) is None:
                message = "is no resource of a container: others have a name with '/'"
                resources.wrong(message, key, name)
    for name, amount in requests.items():
        if _is_overcommitted(name):
            continue
        limit = limits.get(name)
        if limit is None:
            resources.wrong("needs a limit of the same amount", "requests", name)
        elif amount != limit:
            resources.wrong(f"must be the limit, {quantity.format(limit)}", "requests", name)
    if any(map(_is_huge, {**requests, **limits})) and not {CPU, MEMORY} & {
        *requests,
        *limits,
    }:
        resources.wrong("must have cpu or memory beside huge pages")
    return requests, limits


def of_pod(spec: Part, containers: list[tuple[Amounts, Amounts]]) -> None:
    """Check what the pod asks for as a whole, beside its containers."""
    resources = spec.part("resources")
    if resources is None:
        return
    requests, limits = _lists(resources)
    for key, amounts in (("limits", limits), ("requests", requests)):
        for name in amounts:
            if name not in _OF_PODS and not _is_huge(name):
                resources.wrong("is no resource of a pod as a whole", key, name)
    sums: dict[str, Fraction] = {}
    for asked, _ in containers:
        for name, amount in asked.items():
            sums[name] = sums.get(name, Fraction()) + amount
    for name, amount in requests.items():
        total = sums.get(name, Fraction())
        if amount < total:
            message = f"must be >= what the containers ask for, {quantity.format(total)};"
            resources.wrong(f"{message} is {quantity.format(amount)}", "requests", name)
    for name, amount in limits.items():
        most = max((each.get(name, Fraction()) for _, each in containers), default=Fraction())
        if amount < most:
            message = f"must be >= the limit of a container, {quantity.format(most)};"
            resources.wrong(f"{message} is {quantity.format(amount)}", "limits", name)


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


def _lists(resources: Part) -> tuple[Amounts, Amounts]:
    """Requests and limits, each amount checked, and against each other."""
    limits = resources.quantities("limits")
    requests = resources.quantities("requests")
    for key, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            wrong = syntax.qualified_name_error(name)
            if wrong is not None:
                resources.wrong(f"{wrong}, is {shown(name)}", key, name)
            elif is_integral(name) and amount % 1:
                resources.wrong(f"must be a whole number, is {amount}", key, name)
            elif _is_huge(name):
                _pages(resources, key, name, amount)
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is not None and amount > limit and _is_overcommitted(name):
            path = paths.at("limits", name)
            values = resources.value
            message = f"must be <= {path}, which is {values['limits'][name]}"
            shown_amount = shown(values["requests"][name])
            resources.wrong(f"{message}; is {shown_amount}", "requests", name)
    return requests, limits


def _pages(resources: Part, key: str, name: str, amount: Fraction) -> None:
    try:
        size = quantity.parse(name.removeprefix(HUGEPAGES))
    except InvalidError:
        size = Fraction()
    if size <= 0:
        resources.wrong(f"must have the size of a page after {HUGEPAGES}", key, name)
    elif amount % size:
        resources.wrong("must be a multiple of the page's size", key, name)


def _is_huge(name: str) -> bool:
    return name.startswith(HUGEPAGES)


def _is_overcommitted(name: str) -> bool:
    """Whether more may be promised than there is: of native resources, but for huge pages."""
    native = "/" not in name or "kubernetes.io/" in name
    return native and not _is_huge(name)

"""Amounts of resources, as integers.

Millicores for ``cpu``; bytes for ``memory``, ``ephemeral-storage`` and ``hugepages-…``;
counts for everything else. What is finer rounds up, so that no request is forgotten. No
amount, nor a sum made here, is over ``LARGEST``.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from hekla.domain import quantity
from hekla.domain.errors import InvalidError, Violation

Resources = Mapping[str, int]

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
HUGEPAGES: Final = "hugepages-"

LARGEST: Final = quantity.LARGEST


def is_bytes(name: str) -> bool:
    """Whether the resource is counted in bytes."""
    return name in {MEMORY, EPHEMERAL_STORAGE} or name.startswith(HUGEPAGES)


def parse_amount(name: str, value: str | int | float) -> int:
    """The amount of the resource ``name`` that a quantity stands for.

    Raises:
        InvalidError: ``value`` is not a quantity.
    """
    return _amount(1000 if name == CPU else 1, value)


@lru_cache(maxsize=8192, typed=True)
def _amount(per: int, value: str | int | float) -> int:
    amount = quantity.ceil(quantity.parse(value), per=per)
    return max(-LARGEST, min(amount, LARGEST))


def format_amount(name: str, amount: int) -> str:
    """An amount of the resource ``name`` as a quantity."""
    if name == CPU:
        return quantity.format(Fraction(amount, 1000))
    return quantity.format(amount, binary=is_bytes(name))


def parse_list(values: Mapping[str, Any]) -> dict[str, int]:
    """The amounts in a Kubernetes resource list.

    Raises:
        InvalidError: naming each resource whose value is not a quantity.
    """
    amounts: dict[str, int] = {}
    violations: list[Violation] = []
    for name, value in values.items():
        try:
            amounts[name] = parse_amount(name, value)
        except (InvalidError, TypeError) as error:
            # TypeError: a list or an object cannot be a key of the cache.
            text = str(error) if isinstance(error, InvalidError) else "must be a quantity"
            violations.append(Violation(name, text))
    if violations:
        raise InvalidError.of(violations)
    return amounts


def format_list(amounts: Resources) -> dict[str, str]:
    """Amounts as a Kubernetes resource list."""
    return {name: format_amount(name, amount) for name, amount in amounts.items()}


def add(one: Resources, other: Resources) -> dict[str, int]:
    """The sum, resource by resource."""
    total = dict(one)
    for name, amount in other.items():
        total[name] = min(total.get(name, 0) + amount, LARGEST)
    return total


def largest(one: Resources, other: Resources) -> dict[str, int]:
    """The larger of both amounts, resource by resource."""
    most = dict(one)
    for name, amount in other.items():
        most[name] = max(most.get(name, amount), amount)
    return most


def pod_request(pod: Mapping[str, Any]) -> dict[str, int]:
    """What a node must have free for a pod, given the pod, its template, or its spec.

    Containers and sidecars run together, so they add up. Each other init container runs
    alone beside the sidecars started before it, so the largest of those moments counts.
    Requests at pod level replace the sum, overhead comes on top, and a limit stands in for
    a request that is absent.

    Raises:
        InvalidError: a request or limit is not a quantity.
    """
    spec = pod.get("spec", pod) or {}
    running: dict[str, int] = {}
    for container in spec.get("containers") or ():
        running = add(running, container_request(container))
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        request = container_request(container)
        if container.get("restartPolicy") == "Always":
            running = add(running, request)
            sidecars = add(sidecars, request)
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, add(request, sidecars))
    total = largest(running, starting)
    total.update(_pod_level(spec, total))
    overhead = spec.get("overhead")
    return add(total, parse_list(overhead)) if overhead else total


def container_request(container: Mapping[str, Any]) -> dict[str, int]:
    """What one container asks for: its requests, and its limits where they are absent."""
    resources = container.get("resources")
    if not resources:
        return {}
    limits = parse_list(resources.get("limits") or {})
    return limits | parse_list(resources.get("requests") or {})


def _pod_level(spec: Mapping[str, Any], total: Resources) -> dict[str, int]:
    resources = spec.get("resources")
    if not resources:
        return {}
    limits = parse_list(resources.get("limits") or {})
    # A limit of the pod stands in only for what no container requests.
    wanted = {name: amount for name, amount in limits.items() if name not in total}
    wanted |= parse_list(resources.get("requests") or {})
    return {
        name: amount
        for name, amount in wanted.items()
        if name in {CPU, MEMORY} or name.startswith(HUGEPAGES)
    }

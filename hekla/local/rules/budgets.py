"""Disruption budgets: how many of some pods may be taken away at a time. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from hekla.domain import selector
from hekla.domain.errors import InvalidError, Violation
from hekla.local.kinds.registry import Object
from hekla.local.rules.pods import FINISHED

_FIELDS: Final = ("minAvailable", "maxUnavailable")


class Budget(NamedTuple):
    """What a disruption budget allows now."""

    name: str
    healthy: int
    desired: int
    expected: int

    @property
    def allowed(self) -> int:
        """How many pods may be disrupted."""
        return max(self.healthy - self.desired, 0) if self.expected else 0


def budget(name: str, spec: Object, pods: Sequence[Object]) -> Budget:
    """What a budget allows, given the pods that it is about."""
    live = [pod for pod in pods if phase(pod) not in FINISHED]
    healthy = sum(ready(pod) and "deletionTimestamp" not in pod["metadata"] for pod in live)
    expected = len(live)
    if "maxUnavailable" in spec:
        desired = expected - _amount(spec["maxUnavailable"], expected)
    else:
        desired = _amount(spec.get("minAvailable", 1), expected)
    return Budget(name, healthy, max(desired, 0), expected)


def check_budget(value: Object) -> list[Violation]:
    """All that is wrong with a disruption budget."""
    spec = value.get("spec")
    if not isinstance(spec, dict):
        return [Violation("spec", "Required value")]
    found = []
    if all(field in spec for field in _FIELDS):
        why = "Invalid value: minAvailable and maxUnavailable cannot be both set"
        found.append(Violation("spec", why))
    for field in _FIELDS:
        if field in spec and not _is_amount(spec[field]):
            why = f"Invalid value: {spec[field]!r}: must be a count or a percentage like '50%'"
            found.append(Violation(f"spec.{field}", why))
    try:
        selector.from_object(spec.get("selector") or {})
    except InvalidError as error:
        found.append(Violation("spec.selector", f"Invalid value: {error}"))
    return found


def phase(pod: Object) -> str:
    """A pod's phase."""
    return str(pod.get("status", {}).get("phase", ""))


def ready(pod: Object) -> bool:
    """Whether a pod says that it is ready."""
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in pod.get("status", {}).get("conditions", [])
    )


def _is_amount(value: Any) -> bool:
    if isinstance(value, str):
        number = value.removesuffix("%")
        return value.endswith("%") and number.isascii() and number.isdigit() and len(number) < 4
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _amount(value: int | str, whole: int) -> int:
    if isinstance(value, int):
        return value
    return math.ceil(whole * int(value.removesuffix("%")) / 100)

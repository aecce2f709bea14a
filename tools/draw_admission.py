"""Draws ``docs/admission.md`` from the rules and from the bounds of the definitions."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Union

from hekla.api.decode import KINDS
from hekla.api.fields import DURATION, QUANTITY, TIMESTAMP, Bound, Model
from services.webhook.rules.registry import Operation, Rule
from services.webhook.rules.rulebook import RULES

_HEAD: Final = """# Admission

Drawn from the code by `make docs`; do not edit.

What is admitted, by every door alike: `Review` over gRPC, the webhooks of Kubernetes, and
`hekla lint`. An object is judged in Kubernetes' order: defaults of the definition, defaults
of the webhook, bounds of the definition, rules. All violations are told at once, each with
path, value and rule; a field is told of once. A refusal is passing if not the object is wrong
but what is around it: it may be admitted later.

A rule with a plus is beyond Volcano's: an update is refused only for what it makes worse,
never for what was so before, and with `HEKLA_WEBHOOK_ADMISSION_EXTRA=warn` such rules only
warn. Where we judge otherwise than Volcano is in [differences](differences.md).

Pod templates are judged as Kubernetes would judge their pods, wherever that decides whether a
pod can ever be made: names, containers, images, ports, environment, resources, volumes and
mounts, probes, restart policy, tolerations, affinity, spreading, the host's network.
"""

_DEFAULTS_HEAD: Final = """## Defaults

Filled in for new objects; an update of a Job fills in what is absent, so that its manifest
can be applied again.

| kind | field | value |
| --- | --- | --- |
"""
_DEFAULTS: Final = (
    ("all but Queue, HyperNode, Numatopology", "`metadata.namespace`", "`default`"),
    ("Job", "`spec.queue`", "`default`, also for an empty one"),
    ("Job", "`spec.schedulerName`", "the installation's (`scheduler_name`)"),
    ("Job", "`spec.maxRetry`, `spec.tasks[].maxRetry`", "`3`, also for 0"),
    ("Job", "`spec.tasks[].name`", "`default<index>`"),
    (
        "Job",
        "`spec.tasks[].minAvailable`",
        "`minPartitions` times `partitionSize` if partitions have a minimum, else `replicas`",
    ),
    ("Job", "`spec.minAvailable`", "the sum of the tasks' `minAvailable`, also for 0"),
    (
        "Job",
        "`spec.tasks[].template.spec.dnsPolicy`",
        "`ClusterFirstWithHostNet` on the host's network",
    ),
    (
        "Job",
        "`spec.plugins`",
        "`svc` with tensorflow, mpi, pytorch or ray; `ssh` with mpi",
    ),
    ("Queue", "`spec.weight`, `spec.reclaimable`, `spec.parent`", "`1`, `true`, `root`"),
    ("Queue", "`volcano.sh/hierarchy`, `…-weights`", "begin with `root/` and `1/`"),
    (
        "PodGroup",
        "`spec.queue`",
        "the namespace's `scheduling.volcano.sh/queue-name`, in place of `default`",
    ),
    (
        "Pod",
        "`spec.schedulingGates`",
        "the gate that the annotation `scheduling.volcano.sh/queue-allocation-gate` asks for",
    ),
)


def draw() -> str:
    """The page."""
    kinds = list(dict.fromkeys(kind for rule in RULES for kind in rule.kinds))
    sections = [_section(kind) for kind in kinds]
    defaults = "\n".join(map(_cells, _DEFAULTS))
    filled = [each for each in sections if each]
    return "\n".join([_HEAD, f"{_DEFAULTS_HEAD}{defaults}\n", *filled, _bounds()])


def _section(kind: str) -> str:
    rules = [rule for rule in RULES if rule.kinds == (kind,)]
    refusing = [rule for rule in rules if not rule.warns]
    warning = [rule for rule in rules if rule.warns]
    parts = [f"## {kind}\n"] if rules else []
    for title, some in (("", refusing), ("Warned of, not refused:\n", warning)):
        if some:
            parts += [title] if title else []
            parts += [
                "| rule | path | when | what must hold | what breaks it |",
                "| --- | --- | --- | --- | --- |",
                *map(_row, some),
                "",
            ]
    return "\n".join(parts)


def _row(rule: Rule) -> str:
    when = ", ".join(each.value.lower() for each in Operation if each in rule.operations)
    plus = " +" if rule.beyond else ""
    paths = ", ".join(f"`{path}`" for path in rule.path.split(", "))
    return _cells((f"`{rule.name}`{plus}", paths, when, rule.says, f"`{rule.example}`"))


def _cells(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _bounds() -> str:
    parts = ["## Bounds\n\nThe rule `definition`, on create and update of each kind.\n"]
    for kind in KINDS.values():
        rows = list(_model(kind, "", ()))
        if rows:
            parts += [
                f"### {kind.__name__}\n",
                "| path | bound |",
                "| --- | --- |",
                *(f"| `{path}` | {text} |" for path, text in rows),
                "",
            ]
    return "\n".join(parts)


def _model(
    cls: type[Model], path: str, above: tuple[type[Model], ...]
) -> Iterator[tuple[str, str]]:
    hints = typing.get_type_hints(cls, include_extras=True)
    for name, info in cls.model_fields.items():
        alias = info.alias or name
        if alias in {"status", "apiVersion", "kind", "metadata"} or cls in above:
            continue
        place = f"{path}.{alias}" if path else alias
        yield from _hint(hints[name], place, (*above, cls))


def _hint(hint: Any, place: str, above: tuple[type[Model], ...]) -> Iterator[tuple[str, str]]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        yield from _hint(inner[0], place, above)
        for bound in inner[1:]:
            if isinstance(bound, Bound):
                yield place, _words(bound)
    elif origin in (Union, types.UnionType):
        for each in inner:
            yield from _hint(each, place, above)
    elif origin is list:
        yield from _hint(inner[0], f"{place}[]", above)
    elif origin is dict:
        yield from _hint(inner[1], f"{place}.*", above)
    elif isinstance(hint, type) and issubclass(hint, Model):
        yield from _model(hint, place, above)


_CHECKS: Final = {
    id(QUANTITY.check): "a quantity",
    id(DURATION.check): "a duration",
    id(TIMESTAMP.check): "a time",
}


def _words(bound: Bound) -> str:
    words = ["required"] if bound.required else []
    if bound.minimum is not None:
        words.append(f">= {bound.minimum}")
    if bound.maximum is not None:
        words.append(f"<= {bound.maximum}")
    if bound.min_length:
        words.append("not empty")
    if bound.max_length is not None:
        words.append(f"at most {bound.max_length} characters")
    if bound.min_items is not None:
        words.append(f"at least {bound.min_items} item")
    if bound.one_of is not None:
        words.append(f"one of {', '.join(f'`{each}`' for each in bound.one_of)}")
    if bound.check is not None:
        words.append(_CHECKS.get(id(bound.check)) or _check_words(bound))
    if bound.each is not None:
        words.append(f"each {_words(bound.each)}")
    return "; ".join(words)


def _check_words(bound: Bound) -> str:
    assert bound.check is not None
    return bound.check("/:!") or "checked"

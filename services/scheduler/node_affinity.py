"""The terms of a pod's node affinity, read from its object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hekla.domain.errors import InvalidError
from hekla.domain.selector import Operator, Requirement
from services.scheduler.core.objects import NODE_NAME, NodeTerm

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_WITHOUT_VALUES: Final = frozenset({Operator.EXISTS, Operator.DOES_NOT_EXIST})
_COMPARING: Final = frozenset({Operator.GREATER, Operator.LESS})

NOWHERE: Final = (NodeTerm(),)
"""Required terms that no node matches."""


def required(affinity: Mapping[str, Any]) -> tuple[NodeTerm, ...]:
    """What ``requiredDuringSchedulingIgnoredDuringExecution`` says; nothing: no condition.

    Raises:
        InvalidError: it makes no sense.
    """
    demanded = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not demanded:
        return ()
    terms = _expect(demanded, Mapping).get("nodeSelectorTerms")
    return tuple(_term(each) for each in _expect(terms or [], list)) or NOWHERE


def preferred(affinity: Mapping[str, Any]) -> tuple[tuple[int, NodeTerm], ...]:
    """What ``preferredDuringSchedulingIgnoredDuringExecution`` says, with weights.

    Raises:
        InvalidError: it makes no sense.
    """
    wishes = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    found = []
    for wish in _expect(wishes, list):
        weight = _expect(_expect(wish, Mapping).get("weight") or 0, int)
        term = _term(wish.get("preference") or {})
        if weight > 0 and term != NodeTerm():
            found.append((weight, term))
    return tuple(found)


def _term(term: Any) -> NodeTerm:
    parts = _expect(term, Mapping)
    fields = tuple(_requirements(parts.get("matchFields")))
    for field in fields:
        if field.key != NODE_NAME or field.operator not in {Operator.IN, Operator.NOT_IN}:
            raise InvalidError(f"matchFields cannot ask for {field.key} {field.operator}")
    return NodeTerm(tuple(_requirements(parts.get("matchExpressions"))), fields)


def _requirements(expressions: Any) -> Iterable[Requirement]:
    for expression in _expect(expressions or [], list):
        each = _expect(expression, Mapping)
        key = _expect(each.get("key"), str)
        try:
            operator = Operator(each.get("operator"))
        except ValueError as error:
            raise InvalidError(f"unknown operator {each.get('operator')!r}") from error
        values = [_expect(value, str) for value in _expect(each.get("values") or [], list)]
        if operator in _COMPARING:
            sound = len(values) == 1 and _NUMBER.fullmatch(values[0]) is not None
        else:
            sound = bool(values) is (operator not in _WITHOUT_VALUES)
        if not sound:
            raise InvalidError(f"{operator} cannot compare with {values}")
        yield Requirement(key, operator, frozenset(values))


def _expect(value: Any, shape: type) -> Any:
    if not isinstance(value, shape):
        raise InvalidError(f"must be a {shape.__name__}, is {value!r}")
    return value

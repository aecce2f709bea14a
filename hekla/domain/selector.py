"""Label selectors, in both of Kubernetes' forms: as text and as an object.

``parse("app=web,tier in (a,b),!debug")`` and ``from_object({"matchLabels": …})`` give a
``Selector``; ``matches(labels)`` asks it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from hekla.domain import paths
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.syntax import label_value_error, qualified_name_error


class Operator(StrEnum):
    """How a requirement compares a label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


_OBJECT_OPERATORS: Final = (
    Operator.IN,
    Operator.NOT_IN,
    Operator.EXISTS,
    Operator.DOES_NOT_EXIST,
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether ``labels`` meet the condition. A label that is absent is in no set."""
        value = labels.get(self.key)
        if self.operator is Operator.IN:
            return value is not None and value in self.values
        if self.operator is Operator.NOT_IN:
            return value is None or value not in self.values
        if self.operator is Operator.EXISTS:
            return value is not None
        if self.operator is Operator.DOES_NOT_EXIST:
            return value is None
        return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        number = _integer(value)
        [bound] = self.values
        if number is None:
            return False
        return number > int(bound) if self.operator is Operator.GREATER else number < int(bound)


@dataclass(frozen=True, slots=True)
class Selector:
    """Conditions on labels, all of which must hold; without any, everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether ``labels`` meet every condition."""
        return all(requirement.matches(labels) for requirement in self.requirements)


EVERYTHING: Final = Selector()


def parse(text: str) -> Selector:
    """The selector that ``text`` writes; the empty text selects everything.

    Raises:
        InvalidError: it is not a selector.
    """
    return _Reader(text).selector()


def from_object(value: Mapping[str, Any]) -> Selector:
    """The selector that a ``LabelSelector`` object states.

    Raises:
        InvalidError: with the path, inside the object, of all that is wrong.
    """
    violations: list[Violation] = []
    found: list[Requirement] = []
    labels = _expect(value.get("matchLabels"), Mapping, "matchLabels", violations) or {}
    for key, label in sorted(labels.items(), key=lambda item: str(item[0])):
        path = paths.at("matchLabels", key)
        violations += _key_violations(key, path) or _value_violations(label, path)
        found.append(Requirement(key, Operator.IN, frozenset([str(label)])))
    expressions = _expect(value.get("matchExpressions"), list, "matchExpressions", violations)
    for index, expression in enumerate(expressions or ()):
        path = paths.at("matchExpressions", index)
        if _expect(expression, Mapping, path, violations):
            found += _expression(expression, path, violations)
        elif isinstance(expression, Mapping) or expression is None:
            violations.append(Violation(f"{path}.key", "is required"))
    if violations:
        raise InvalidError.of(violations)
    return Selector(tuple(found))


def validate_labels(labels: Mapping[str, str], path: str) -> Sequence[Violation]:
    """All that is wrong with the keys and values of ``labels``, found at ``path``."""
    violations: list[Violation] = []
    for key, value in labels.items():
        violations += _key_violations(key, paths.at(path, key))
        violations += _value_violations(value, paths.at(path, key))
    return violations


def _expression(
    expression: Mapping[str, Any], path: str, violations: list[Violation]
) -> list[Requirement]:
    key, operator = expression.get("key"), expression.get("operator")
    values = _expect(expression.get("values"), list, f"{path}.values", violations) or []
    wrong = _key_violations(key, f"{path}.key")
    if operator not in _OBJECT_OPERATORS:
        allowed = ", ".join(_OBJECT_OPERATORS)
        message = f"must be one of {allowed}, is {operator!r}"
        wrong.append(Violation(f"{path}.operator", message))
    elif operator in {Operator.IN, Operator.NOT_IN}:
        if not values:
            wrong.append(Violation(f"{path}.values", f"must not be empty with {operator}"))
    elif values:
        wrong.append(Violation(f"{path}.values", f"must be empty with {operator}"))
    for position, item in enumerate(values):
        wrong += _value_violations(item, f"{path}.values[{position}]")
    violations += wrong
    if wrong:
        return []
    return [Requirement(str(key), Operator(str(operator)), frozenset(values))]


def _expect(value: Any, shape: type, path: str, violations: list[Violation]) -> Any:
    if value is not None and not isinstance(value, shape):
        what = "a list" if shape is list else "an object"
        violations.append(Violation(path, f"must be {what}"))
        return None
    return value


def _key_violations(key: object, path: str) -> list[Violation]:
    if key is None:
        return [Violation(path, "is required")]
    if not isinstance(key, str):
        return [Violation(path, f"must be a text, is {key!r}")]
    wrong = qualified_name_error(key)
    return [Violation(path, f"{wrong}, is {key!r}")] if wrong else []


def _value_violations(value: object, path: str) -> list[Violation]:
    if not isinstance(value, str):
        return [Violation(path, f"must be a text, is {value!r}")]
    wrong = label_value_error(value)
    return [Violation(path, f"{wrong}, is {value!r}")] if wrong else []


def _integer(value: str | None) -> int | None:
    if value is None or re.fullmatch(r"[+-]?[0-9]{1,19}", value, re.ASCII) is None:
        return None
    return int(value)


_TOKEN: Final = re.compile(r"\s*(?:(==|!=|[=!<>(),])|([^\s=!<>(),]+))")


class _Reader:
    """Reads a selector's text from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [found[1] or found[2] for found in _TOKEN.finditer(text.rstrip())]
        self._at = 0

    def selector(self) -> Selector:
        if not self._tokens:
            return EVERYTHING
        found = [self._requirement()]
        while self._peek():
            self._take(",")
            found.append(self._requirement())
        return Selector(tuple(found))

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._next()
            return Requirement(self._key(), Operator.DOES_NOT_EXIST)
        key = self._key()
        if self._peek() in {"", ","}:
            return Requirement(key, Operator.EXISTS)
        read = self._OPERATORS.get(self._next())
        if read is None:
            raise self._error(f"has no operator after {key!r}")
        return read(self, key)

    def _equal(self, key: str) -> Requirement:
        return Requirement(key, Operator.IN, frozenset([self._value()]))

    def _not_equal(self, key: str) -> Requirement:
        return Requirement(key, Operator.NOT_IN, frozenset([self._value()]))

    def _in(self, key: str) -> Requirement:
        return Requirement(key, Operator.IN, self._values())

    def _not_in(self, key: str) -> Requirement:
        return Requirement(key, Operator.NOT_IN, self._values())

    def _greater(self, key: str) -> Requirement:
        return Requirement(key, Operator.GREATER, frozenset([self._number()]))

    def _less(self, key: str) -> Requirement:
        return Requirement(key, Operator.LESS, frozenset([self._number()]))

    _OPERATORS: Final[Mapping[str, Callable[[_Reader, str], Requirement]]] = {
        "=": _equal,
        "==": _equal,
        "!=": _not_equal,
        "in": _in,
        "notin": _not_in,
        ">": _greater,
        "<": _less,
    }

    def _key(self) -> str:
        key = self._next()
        wrong = qualified_name_error(key)
        if wrong:
            raise self._error(f"has the key {key!r}, which {wrong}")
        return key

    def _value(self) -> str:
        if self._peek() in {"", ",", ")"}:
            return ""
        value = self._next()
        wrong = label_value_error(value)
        if wrong:
            raise self._error(f"has the value {value!r}, which {wrong}")
        return value

    def _values(self) -> frozenset[str]:
        self._take("(")
        values = {self._value()}
        while self._peek() == ",":
            self._next()
            values.add(self._value())
        self._take(")")
        return frozenset(values)

    def _number(self) -> str:
        number = self._next()
        if _integer(number) is None:
            raise self._error(f"compares with {number!r}, which must be an integer")
        return number

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _take(self, wanted: str) -> None:
        token = self._next()
        if token != wanted:
            raise self._error(f"must have {wanted!r} where {token or 'it ends'!r} is")

    def _error(self, what: str) -> InvalidError:
        text = self._text if len(self._text) <= 120 else f"{self._text[:120]}…"
        return InvalidError(f"the label selector {text!r} {what}")

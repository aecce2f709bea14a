"""What a list or a watch asks for: a namespace, a label selector, a field selector."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hekla.domain import selector
from hekla.domain.errors import InvalidError
from hekla.local.kinds import errors
from hekla.local.kinds.registry import Kind
from hekla.local.storage.memory import Entry


class Condition(NamedTuple):
    """One comparison of a field selector."""

    value_of: Callable[[Entry], str]
    wanted: str
    equal: bool

    def holds(self, entry: Entry) -> bool:
        """Whether the entry is as asked."""
        return (self.value_of(entry) == self.wanted) is self.equal


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind are meant."""

    kind: Kind
    namespace: str | None = None
    labels: selector.Selector = selector.EVERYTHING
    conditions: tuple[Condition, ...] = ()
    name: str | None = None
    """The one name that can match, where the field selector gives one."""
    everything: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        unasked = (
            self.namespace is None and not self.labels.requirements and not self.conditions
        )
        object.__setattr__(self, "everything", unasked)

    def matches(self, entry: Entry) -> bool:
        """Whether ``entry`` is meant."""
        if self.everything:
            return True
        return (
            (self.namespace is None or entry.namespace == self.namespace)
            and all(condition.holds(entry) for condition in self.conditions)
            and self.labels.matches(entry.labels)
        )


def parse(
    kind: Kind, namespace: str | None, label_text: str = "", field_text: str = ""
) -> Selection:
    """The selection that a request's parameters write.

    Raises:
        ApiError: they do not.
    """
    try:
        labels = selector.parse(label_text)
    except InvalidError as error:
        raise errors.bad_request(f"unable to parse requirement: {error}") from error
    name = None
    conditions = []
    for key, equal, wanted in _terms(field_text):
        if key == "metadata.name" and equal:
            name = wanted
        conditions.append(Condition(_reader(kind, key), wanted, equal))
    return Selection(kind, namespace, labels, tuple(conditions), name)


_TERM: Final = re.compile(r"(?P<key>[^=!,]+)(?P<operator>==|!=|=)(?P<value>(?:[^,\\=]|\\.)*)")


def _terms(text: str) -> list[tuple[str, bool, str]]:
    terms = []
    at = 0
    while at < len(text):
        if text[at] == ",":
            at += 1
            continue
        found = _TERM.match(text, at)
        if found is None or (found.end() < len(text) and text[found.end()] != ","):
            raise errors.bad_request(
                f"invalid field selector {text[:200]!r}: must be like 'a=b,c!=d'"
            )
        value = re.sub(r"\\(.)", r"\1", found["value"])
        terms.append((found["key"].strip(), found["operator"] != "!=", value))
        at = found.end()
    return terms


def _reader(kind: Kind, key: str) -> Callable[[Entry], str]:
    if key == "metadata.name":
        return lambda entry: entry.name
    if key == "metadata.namespace" and kind.namespaced:
        return lambda entry: entry.namespace
    names = list(kind.fields)
    if key not in names:
        raise errors.bad_request(f"field label not supported: {key}")
    index = names.index(key)
    return lambda entry: entry.fields[index]

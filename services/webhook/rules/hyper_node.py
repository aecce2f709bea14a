"""Rules for hypernodes: they have members, and their patterns can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from hekla.api.fields import shown
from hekla.api.hyper_node import HyperNode
from hekla.domain import paths
from hekla.domain.errors import Violation
from services.webhook.rules.registry import WRITES, Case, Rule

LONGEST: Final = 1000
"""Characters of a pattern."""
_NOT_LINEAR: Final = re.compile(
    r"(?<!\\)(?:\\\\)*(?P<part>\(\?(?:[=!>(]|<[=!]|P=|#)|\\[1-9]|\\Z|[*+?}]\+)"
)
"""What Go's expressions do not have: they are matched in linear time."""


def pattern_error(pattern: str) -> str | None:
    """What keeps ``pattern`` from being an expression that Go would take too."""
    if len(pattern) > LONGEST:
        return f"must be no more than {LONGEST} characters, has {len(pattern)}"
    found = _NOT_LINEAR.search(pattern)
    if found is not None:
        return f"must do without {found['part']}, which takes more than linear time"
    try:
        re.compile(pattern.replace("\\z", "\\Z"))
    except (re.error, OverflowError, RecursionError) as error:
        return f"must be a regular expression: {error}"
    return None


def _members(case: Case[HyperNode]) -> Iterator[Violation]:
    if case.object.spec.members is None:
        yield Violation("spec.members", "is required: a hypernode has at least one member")


def _selectors(case: Case[HyperNode]) -> Iterator[Violation]:
    for index, member in enumerate(case.object.spec.members or ()):
        if member.selector is None:
            place = paths.at("spec.members", index, "selector")
            yield Violation(place, "is required: it says which members are meant")


def _patterns(case: Case[HyperNode]) -> Iterator[Violation]:
    for index, member in enumerate(case.object.spec.members or ()):
        match = member.selector.regex_match if member.selector is not None else None
        pattern = match.pattern if match is not None else None
        wrong = pattern_error(pattern) if pattern else None
        if wrong is not None:
            place = paths.at("spec.members", index, "selector", "regexMatch", "pattern")
            yield Violation(place, f"{wrong}; is {shown(pattern)}")


RULES: Final = (
    Rule(
        name="hyper-node.members",
        kinds=("HyperNode",),
        operations=WRITES,
        check=_members,
        path="spec.members",
        says="A hypernode has at least one member.",
        example="spec: {tier: 1}",
    ),
    Rule(
        name="hyper-node.selectors",
        kinds=("HyperNode",),
        operations=WRITES,
        check=_selectors,
        path="spec.members[].selector",
        says="A member says which nodes or hypernodes are meant.",
        example="members: [{type: Node}]",
        beyond=True,
    ),
    Rule(
        name="hyper-node.patterns",
        kinds=("HyperNode",),
        operations=WRITES,
        check=_patterns,
        path="spec.members[].selector.regexMatch.pattern",
        says="A pattern is a regular expression of the linear kind that Go has: without looking"
        " around and without references back.",
        example="pattern: a(b",
    ),
)

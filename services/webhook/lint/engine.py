"""Judges manifests: each document as it would be judged at the door."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hekla.api import document
from hekla.api.decode import KINDS, read
from hekla.api.document import Document
from hekla.api.fields import Model, shown
from hekla.api.lines import Lines
from hekla.domain.errors import InvalidError, Violation
from services.webhook.lint.world import FileWorld, identity
from services.webhook.rules.admission import Operation, admit
from services.webhook.rules.pod import Pod
from services.webhook.rules.world import Limits

MANIFEST: Final = "manifest"
"""The rule that a document can be read as an object of its kind."""

_OURS: Final = frozenset(kind for _, kind in KINDS)


@dataclass(frozen=True, slots=True)
class Source:
    """A file and what is in it."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to say of one object."""

    file: str
    line: int
    """Where the field stands, or the nearest around it that is written."""
    object: str
    """Its kind and name; empty if it cannot be read."""
    violation: Violation
    refuses: bool
    """Whether it would be refused for it, or only warned of."""


@dataclass(slots=True)
class Outcome:
    """All there is to say."""

    findings: list[Finding] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    objects: int = 0

    @property
    def refused(self) -> bool:
        """Whether anything would be refused."""
        return any(finding.refuses for finding in self.findings)


@dataclass(frozen=True, slots=True)
class _Read:
    """An object in question."""

    source: str
    lines: Lines
    object: Any


def lint(
    sources: Iterable[Source],
    world: Sequence[Source] | None,
    *,
    delete: bool = False,
    limits: Limits = Limits(),  # noqa: B008 - immutable
) -> Outcome:
    """Judge the objects of ``sources`` in a world of those in ``world`` and of themselves.

    Raises:
        InvalidError: an object of the world cannot be read.
    """
    known = FileWorld(complete=world is not None)
    for source in world or ():
        for there in document.load(source.data):
            if not known.add_foreign(there.value):
                known.add(_as_object(there))
    outcome = Outcome()
    asked = [found for source in sources for found in _read(source, known, outcome)]
    outcome.objects = len(asked)
    before = [known.get(identity(each.object)) for each in asked]
    if not delete:
        for each in asked:
            known.add(each.object)
    for each, old in zip(asked, before, strict=True):
        operation = Operation.CREATE if old is None else Operation.UPDATE
        if delete:
            operation = Operation.DELETE
        found = admit(operation, each.object, old, known, limits)
        outcome.findings += _findings(each, found.violations, refuses=True)
        outcome.findings += _findings(each, found.notes, refuses=False)
    outcome.unchecked += known.unchecked
    return outcome


def _read(source: Source, known: FileWorld, outcome: Outcome) -> list[_Read]:
    found = []
    try:
        documents = document.load(source.data)
    except InvalidError as error:
        for violation in error.violations or (Violation("", str(error)),):
            outcome.findings.append(_unreadable(source.name, 1, violation))
        return []
    for each in documents:
        kind = each.value.get("kind")
        if kind not in _OURS and kind != "Pod" and isinstance(kind, str):
            known.add_foreign(each.value)
            place = f"{source.name}:{each.line}"
            outcome.unchecked.append(f"{place}: {shown(kind)}, which is no kind of ours")
            continue
        try:
            found.append(_Read(source.name, each.lines, _as_object(each)))
        except InvalidError as error:
            for violation in error.violations or (Violation("", str(error)),):
                line = each.lines.of(violation.path)
                outcome.findings.append(_unreadable(source.name, line, violation))
    return found


def _unreadable(file: str, line: int, violation: Violation) -> Finding:
    named = Violation(violation.path, violation.message, rule=MANIFEST)
    return Finding(file, line, "", named, refuses=True)


def _as_object(found: Document) -> Model | Pod:
    if found.value.get("kind") == "Pod" and found.value.get("apiVersion") == "v1":
        return Pod(found.value)
    return read(found.value)


def _findings(
    each: _Read, violations: Iterable[Violation], *, refuses: bool
) -> Iterator[Finding]:
    kind, namespace, name = identity(each.object)
    title = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
    for violation in violations:
        line = each.lines.of(violation.path)
        yield Finding(each.source, line, title, violation, refuses)

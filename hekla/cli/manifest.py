"""Manifests as the command line takes them: every document checked before the first is sent."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hekla.api import document
from hekla.api.decode import Object, decode
from hekla.api.job import Job
from hekla.api.job_flow import JobFlow
from hekla.api.job_template import JobTemplate
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.cli.kinds import JOB_FLOWS, JOB_TEMPLATES, JOBS, POD_GROUPS, QUEUES
from hekla.cli.output import Kind
from hekla.domain.errors import InvalidError, Violation

Applied = Job | PodGroup | Queue | JobTemplate | JobFlow
"""What may be created by a manifest."""

STDIN: Final = "-"


_KINDS: Final[Mapping[type[Applied], Kind[Any]]] = {
    Job: JOBS,
    PodGroup: POD_GROUPS,
    Queue: QUEUES,
    JobTemplate: JOB_TEMPLATES,
    JobFlow: JOB_FLOWS,
}


@dataclass(frozen=True, slots=True)
class Item:
    """One object of a manifest, and where it stands."""

    object: Applied
    where: str
    """For messages: ``jobs.yaml: document 2 (line 7)``."""

    @property
    def name(self) -> str:
        """``job.batch.volcano.sh/job-1``."""
        found = self.object
        kind = _KINDS[type(found)]
        return f"{kind.resource}/{found.metadata.name}"


def read(files: Sequence[str], namespace: str | None) -> Sequence[Item]:
    """The objects of all files; those without a namespace get ``namespace``.

    Raises:
        InvalidError: with everything that is wrong in any of them.
    """
    items: list[Item] = []
    wrong: list[Violation] = []
    for file in files:
        try:
            items += parse(_bytes(file), _shown(file), namespace)
        except InvalidError as error:
            wrong += error.violations or [Violation(_shown(file), str(error))]
    if wrong:
        raise InvalidError.of(wrong)
    return items


def parse(data: bytes, file: str, namespace: str | None) -> Sequence[Item]:
    """The objects in ``data``.

    Raises:
        InvalidError: with everything that is wrong, each with its document, line and path.
    """
    try:
        documents = document.load(data)
    except InvalidError as error:
        raise InvalidError.of(
            [Violation(file, str(one)) for one in error.violations]
            or [Violation(file, str(error))]
        ) from None
    items: list[Item] = []
    wrong: list[Violation] = []
    for number, found in enumerate(documents, 1):
        where = f"{file}: document {number} (line {found.line})"
        try:
            read = _applied(decode(_as_admission_reads(found.value)))
            items.append(Item(_placed(read, namespace), where))
        except InvalidError as error:
            violations = error.violations or [Violation("", str(error))]
            wrong += [Violation(where, str(one)) for one in violations]
    if wrong:
        raise InvalidError.of(wrong)
    return items


def _bytes(file: str) -> bytes:
    # One byte more than is allowed is enough to see that it is too much.
    if file == STDIN:
        return sys.stdin.buffer.read(document.LARGEST + 1)
    with Path(file).open("rb") as stream:
        return stream.read(document.LARGEST + 1)


def _shown(file: str) -> str:
    return "standard input" if file == STDIN else file


def _as_admission_reads(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without an empty queue: admission takes it for an absent one, bounds refuse it."""
    spec = value.get("spec")
    if (
        value.get("kind") not in ("Job", "JobTemplate")
        or not isinstance(spec, dict)
        or spec.get("queue") != ""
    ):
        return value
    return {**value, "spec": {key: part for key, part in spec.items() if key != "queue"}}


def _applied(found: Object) -> Applied:
    if isinstance(found, Applied):
        return found
    message = f"is {found.kind}, which nothing serves yet"
    raise InvalidError.of([Violation("kind", message)])


def _placed(found: Applied, namespace: str | None) -> Applied:
    metadata = found.metadata
    if isinstance(found, Queue):
        return found
    if not metadata.namespace:
        placed = metadata.model_copy(update={"namespace": namespace or "default"})
        return found.model_copy(update={"metadata": placed})
    if namespace is not None and metadata.namespace != namespace:
        message = f"is {metadata.namespace}, and the command says {namespace}"
        raise InvalidError.of([Violation("metadata.namespace", message)])
    return found

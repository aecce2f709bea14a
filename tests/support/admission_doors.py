"""The doors of admission: each takes a row of the table and gives a verdict."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import grpc
from click.testing import CliRunner

from hekla.api import convert, decode
from hekla.domain.errors import InvalidError
from hekla.v1 import (
    admission_service_pb2 as messages,
    admission_service_pb2_grpc as stubs,
    cron_job_pb2,
    hyper_node_pb2,
    job_flow_pb2,
    job_pb2,
    job_template_pb2,
    pod_group_pb2,
    queue_pb2,
)
from services.webhook.https.inventory import ENDPOINTS
from services.webhook.lint.command import main as lint
from services.webhook.lint.world import FileWorld
from services.webhook.rules.admission import Operation, admit
from services.webhook.rules.pod import Pod
from services.webhook.rules.world import Limits
from tests.support.admission_rows import ANY, WORLD, Row
from tests.support.reviews import patched


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a door says."""

    allowed: bool
    violations: Mapping[str, str]
    """Paths and values."""
    rules: frozenset[str]
    """Of violations."""
    warnings: frozenset[str]
    told: frozenset[str] = frozenset()
    """Paths and messages of violations."""
    stored: Mapping[str, Any] | None = None


Door = Callable[[Row], Verdict | None]
"""Gives None for what does not come through it."""


def limits_of(row: Row) -> Limits:
    """What an installation has chosen for a row."""
    return Limits(
        compat=row.compat,
        protect_used_queues=row.protect_used,
        extra_warns=row.extra_warns,
    )


@cache
def file_world() -> FileWorld:
    """The world of the table."""
    world = FileWorld(complete=True)
    for raw in WORLD:
        if not world.add_foreign(raw):
            world.add(decode.read(raw))
    return world


def library(row: Row, *, off: frozenset[str] = frozenset()) -> Verdict:
    """The rules themselves."""
    found = judged(row, off=off)
    return Verdict(
        allowed=found.allowed,
        violations={each.path: each.value for each in found.violations},
        rules=frozenset(each.rule for each in found.violations),
        warnings=frozenset(found.warnings),
        told=frozenset(_told(each.path, each.message) for each in found.violations),
        stored=found.object.raw
        if isinstance(found.object, Pod)
        else decode.encode(found.object),
    )


def judged(row: Row, *, off: frozenset[str] = frozenset()) -> Any:
    """The answer of the rules."""
    chosen = limits_of(row)
    limits = Limits(
        compat=chosen.compat,
        protect_used_queues=chosen.protect_used_queues,
        extra_warns=chosen.extra_warns,
        off=off,
    )
    return admit(_operation(row), _read(row.object), _read_old(row), file_world(), limits)


def _operation(row: Row) -> Operation:
    if row.delete:
        return Operation.DELETE
    return Operation.CREATE if row.old is None else Operation.UPDATE


def _read(raw: Mapping[str, Any]) -> Any:
    return Pod(raw) if raw["kind"] == "Pod" else decode.read(raw)


def _read_old(row: Row) -> Any:
    return None if row.old is None else _read(row.old)


_FIELDS: Mapping[str, tuple[str, Any]] = {
    "Job": ("job", job_pb2.Job),
    "Queue": ("queue", queue_pb2.Queue),
    "JobFlow": ("job_flow", job_flow_pb2.JobFlow),
    "JobTemplate": ("job_template", job_template_pb2.JobTemplate),
    "CronJob": ("cron_job", cron_job_pb2.CronJob),
    "PodGroup": ("pod_group", pod_group_pb2.PodGroup),
    "HyperNode": ("hyper_node", hyper_node_pb2.HyperNode),
}


def by_grpc(stub: Callable[[Row], stubs.AdmissionServiceStub]) -> Door:
    """The door of a server; ``stub`` gives one that runs with a row's limits."""

    def door(row: Row) -> Verdict | None:
        if row.object["kind"] not in _FIELDS:
            return None
        field, message = _FIELDS[row.object["kind"]]
        objects = {field: convert.to_message(_read(row.object), message)}
        if row.old is not None:
            objects[f"old_{field}"] = convert.to_message(_read_old(row), message)
        request = messages.AdmissionRequest(operation=_operation(row), **objects)
        try:
            answer = stub(row).Review(messages.ReviewRequest(requests=[request]), timeout=10)
        except grpc.RpcError as error:
            raise AssertionError(f"{row.source}: {error}") from error
        [found] = answer.responses
        stored = None
        if found.allowed:
            model = type(_read(row.object))
            stored = decode.encode(convert.to_model(getattr(found, field), model))
        return Verdict(
            allowed=found.allowed,
            violations={each.path: each.value for each in found.violations},
            rules=frozenset(each.rule for each in found.violations),
            warnings=frozenset(found.warnings),
            told=frozenset(_told(each.path, each.message) for each in found.violations),
            stored=stored,
        )

    return door


def by_lint(row: Row) -> Verdict:
    """The command line, with the world in a file."""
    world = [raw for raw in WORLD if not _is(raw, row.old or {})]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "object.json").write_text(json.dumps(row.object))
        listed = {"apiVersion": "v1", "kind": "List", "items": [*world, *_old_of(row)]}
        (place / "world.json").write_text(json.dumps(listed))
        arguments = [str(place / "object.json"), "--world", str(place / "world.json")]
        arguments += ["-o", "json", *(["--delete"] if row.delete else [])]
        arguments += [part for name in row.compat for part in ("--compat", name)]
        arguments += ["--extra-warns"] if row.extra_warns else []
        arguments += ["--protect-used-queues"] if row.protect_used else []
        result = CliRunner().invoke(lint, arguments)
    try:
        found = json.loads(result.stdout)
    except ValueError:
        raise InvalidError(f"{row.source}: {result.output}") from result.exception
    return Verdict(
        allowed=result.exit_code == 0,
        violations={each["path"]: each["value"] for each in found["violations"]},
        rules=frozenset(each["rule"] for each in found["violations"]),
        warnings=frozenset(_told(each["path"], each["message"]) for each in found["warnings"]),
        told=frozenset(_told(each["path"], each["message"]) for each in found["violations"]),
    )


def by_https(ask: Callable[[Row, str, str, Any, Any], Any]) -> Door:
    """The door of API servers; ``ask`` sends an object to a path and gives the response."""

    def door(row: Row) -> Verdict | None:
        plural, operation = f"{row.object['kind'].lower()}s", _operation(row).value
        path = f"/{plural}/validate"
        if path not in ENDPOINTS or operation not in ENDPOINTS[path].operations:
            return None
        value: Any = dict(row.object)
        if operation == "CREATE" and f"/{plural}/mutate" in ENDPOINTS:
            value = patched(ask(row, f"/{plural}/mutate", operation, value, None), value)
        sent = (None, value) if row.delete else (value, row.old)
        found = ask(row, path, operation, *sent)
        causes = found.get("status", {}).get("details", {}).get("causes", ())
        told = {_told(each["field"], each["message"]) for each in causes}
        if not found["allowed"] and not told:
            told = {found["status"]["message"]}
        return Verdict(
            allowed=found["allowed"],
            violations={each["field"]: ANY for each in causes},
            rules=frozenset(),
            warnings=frozenset(found.get("warnings", ())),
            told=frozenset(told),
        )

    return door


def _told(path: str, message: str) -> str:
    return f"{path}: {message}" if path else message


def _is(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    same = one.get("kind") == other.get("kind")
    return same and one["metadata"]["name"] == other["metadata"]["name"]


def _old_of(row: Row) -> list[Mapping[str, Any]]:
    return [] if row.old is None else [row.old]

"""From a request's path and parameters to what is meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from hekla.local.kinds import errors, metadata
from hekla.local.kinds.registry import NAMESPACES, Kind, Registry
from hekla.local.patches import strategic
from hekla.local.patches.merge_keys import merging_of
from hekla.local.patches.standard import (
    JsonPatch,
    MalformedError,
    MergePatch,
    Patch,
    without_nulls,
)
from hekla.local.verbs import bodies
from hekla.local.verbs.deletions import Deletion
from hekla.local.verbs.steps import CREATE, DELETE

MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_OPTIONS: Final = {CREATE: "CreateOptions", DELETE: "DeleteOptions"}
_TOLD: Final[tuple[str, ...]] = ("fieldManager", "fieldValidation", "propagationPolicy")
_APPLY: Final = frozenset({"application/apply-patch+yaml", "application/apply-patch+cbor"})
_FALSE: Final = frozenset({"", "0", "false", "False"})


class Target(NamedTuple):
    """What a path names: a kind, perhaps one object of it, perhaps a part of that."""

    kind: Kind
    namespace: str | None
    name: str | None
    subresource: str


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, read whole."""

    method: str
    path: str
    query: dict[str, str]
    content_type: str
    body: bytes
    agent: str = ""
    """Who says to have sent it."""
    accept: str = ""
    """The forms of answers that it takes."""
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    """What the caller is to be told beside the answer, whatever that is."""

    def flag(self, name: str) -> bool:
        """Whether a parameter is given and not false; some clients say ``True``."""
        return self.query.get(name, "") not in _FALSE

    def number(self, name: str) -> int | None:
        """A parameter that is a whole number.

        Raises:
            ApiError: it is something else.
        """
        text = self.query.get(name, "")
        if not text:
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise errors.bad_request(f"invalid value for {name}: {text[:80]!r}")
        return int(text)

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be kept."""
        text = self.query.get("dryRun", "")
        if text not in {"", "All"}:
            raise errors.bad_request(f"invalid value for dryRun: {text[:80]!r}: must be All")
        return text == "All"

    def options(self, operation: str) -> dict[str, Any]:
        """How it wants that done, as admission webhooks are told."""
        body = bodies.parse(self.body) if operation == DELETE and self.body else {}
        given = body if isinstance(body, dict) else {}
        told = {key: self.query[key] for key in _TOLD if key in self.query}
        return {
            **given,
            **told,
            **({"dryRun": ["All"]} if self.dry_run else {}),
            "kind": _OPTIONS.get(operation, "UpdateOptions"),
            "apiVersion": "meta.k8s.io/v1",
        }

    def json(self, *, nulls: bool = False) -> object:
        """The body of a create or replace; without what is null, unless ``nulls`` stay.

        Raises:
            ApiError: it is not JSON, or is said to be something else.
        """
        if self.content_type not in {"", "application/json"}:
            raise errors.unsupported_media_type(
                f'the body of the request was "{self.content_type[:80]}": '
                "send application/json (with kubectl: create -f FILE)"
            )
        # For Kubernetes a null is nothing, but looking for them costs; most bodies have none.
        value = bodies.parse(self.body)
        return without_nulls(value) if b"null" in self.body and not nulls else value

    def patch(self, kind: Kind) -> Patch:
        """The body of a patch for an object of ``kind``.

        Raises:
            ApiError: it is no patch of a known form.
        """
        read = self._patch_reader(kind)
        try:
            return read(bodies.parse(self.body))
        except MalformedError as error:
            raise errors.bad_request(f"the patch cannot be read: {error}") from error

    def _patch_reader(self, kind: Kind) -> Callable[[object], Patch]:
        given = self.content_type
        if given == MERGE_PATCH:
            return MergePatch.of
        if given == JSON_PATCH:
            return JsonPatch
        if given == STRATEGIC_PATCH and kind.schema is None:
            return lambda value: strategic.parsed(value, merging_of(kind.resource))
        served = [JSON_PATCH, MERGE_PATCH]
        if kind.schema is None:
            served.append(STRATEGIC_PATCH)
        hint = " (with kubectl: apply without --server-side)" if given in _APPLY else ""
        raise errors.unsupported_media_type(
            f'the body of the request was "{given[:80]}" - accepted media types include: '
            f"{', '.join(served)}{hint}"
        )


def read_query(raw: bytes) -> dict[str, str]:
    """The parameters; of several of one name the last."""
    return dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True))


def find(registry: Registry, path: str) -> Target | None:
    """What ``path`` names among the kinds served, or None."""
    group, version, rest = _split(path)
    namespace = None
    in_namespace = rest[0:1] == ["namespaces"] and len(rest) >= 3
    if in_namespace and not (not group and rest[2] in {"status", "finalize"}):
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3:
        return None
    kind = registry.find(group, version, rest[0])
    name = rest[1] if len(rest) > 1 else None
    subresource = rest[2] if len(rest) > 2 else ""
    if kind is None or (subresource and not _has(kind, subresource)):
        return None
    # One object of a namespaced kind is found only in its namespace, a list also outside.
    if kind.namespaced == (namespace is None) and not (kind.namespaced and name is None):
        return None
    return Target(kind, namespace, name, subresource)


def _split(path: str) -> tuple[str, str, list[str]]:
    """Group, version and the rest of a path; the rest is empty for one of another form."""
    parts = path.strip("/").split("/")
    if not all(parts):
        return "", "", []
    if parts[:2] == ["api", "v1"]:
        return "", "v1", parts[2:]
    if parts[0] == "apis" and len(parts) > 3:
        return parts[1], parts[2], parts[3:]
    return "", "", []


def deletion(request: Request, body: object = None) -> Deletion:
    """How a DELETE wants it done, by its parameters and ``body``, else its own.

    Raises:
        ApiError: it says something that is not known.
    """
    if body is None:
        body = request.json() if request.body else {}
    if not isinstance(body, dict):
        raise errors.bad_request("the options of a delete must be an object")
    grace = body.get("gracePeriodSeconds", request.number("gracePeriodSeconds"))
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise errors.bad_request(f"invalid value for gracePeriodSeconds: {grace!r}")
    dry_run = body.get("dryRun") or []
    if dry_run not in ([], ["All"]):
        raise errors.bad_request(f"invalid value for dryRun: {dry_run!r}: must be All")
    preconditions = body.get("preconditions", {})
    if not isinstance(preconditions, dict):
        raise errors.bad_request("preconditions must be an object")
    return Deletion(
        grace,
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
        request.dry_run or bool(dry_run),
        _propagation(request, body),
    )


def _propagation(request: Request, body: Mapping[str, Any]) -> str | None:
    wanted: str | None = body.get("propagationPolicy", request.query.get("propagationPolicy"))
    if wanted is not None and wanted not in list(metadata.PROPAGATION):
        raise errors.bad_request(f"invalid value for propagationPolicy: {wanted!r}")
    old = body.get("orphanDependents")
    if old is None:
        return wanted
    if wanted is not None or not isinstance(old, bool):
        raise errors.bad_request("orphanDependents must be true or false, and stand alone")
    return "Orphan" if old else "Background"


def _has(kind: Kind, subresource: str) -> bool:
    if subresource == "status":
        return kind.status
    if kind is NAMESPACES and subresource == "finalize":
        return True
    return subresource in kind.subresources

"""AdmissionReviews, as API servers send and expect them. Pure."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from hekla.api.fields import shown
from hekla.domain.errors import Violation

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

LONGEST_UID: Final = 256
LONGEST_WARNING: Final = 256
LONGEST_WARNINGS: Final = 4096
"""API servers cut what is longer."""
MOST_CAUSES: Final = 100


class MalformedError(Exception):
    """The body is no review; the text says why in one line."""


@dataclass(frozen=True, slots=True)
class Review:
    """What an API server asks."""

    uid: str
    operation: str
    group: str
    version: str
    resource: str
    subresource: str
    namespace: str
    name: str
    object: Any = None
    old: Any = None
    kind: str = ""

    @property
    def subject(self) -> Mapping[str, str]:
        """What the review is about, as errors of API servers name it."""
        told = {"name": self.name or _given_name(self.object), "group": self.group}
        return {key: text for key, text in {**told, "kind": self.kind}.items() if text}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What it is answered."""

    violations: Sequence[Violation] = ()
    """Why not; empty allows it."""
    warnings: Sequence[str] = ()
    patch: Sequence[Mapping[str, Any]] = ()
    """What mutation changes, as a JSON patch."""
    code: int = 422
    """Of a refusal."""

    @property
    def allowed(self) -> bool:
        """Whether nothing is against it."""
        return not self.violations


def refusal(message: str, code: int = 400) -> Verdict:
    """A verdict on the request rather than its object."""
    return Verdict([Violation("", message)], code=code)


def read(body: bytes) -> Review:
    """The review in a body.

    Raises:
        MalformedError: there is none.
    """
    review = _object(_json(body), "the body")
    if (review.get("apiVersion"), review.get("kind")) != (API_VERSION, KIND):
        found = f"{shown(review.get('kind'))} of {shown(review.get('apiVersion'))}"
        raise MalformedError(f"expected an {KIND} of {API_VERSION}, got {found}")
    request = _object(review.get("request"), "request")
    uid = _text(request, "uid")
    if not uid or len(uid) > LONGEST_UID:
        raise MalformedError(f"request.uid must have from 1 to {LONGEST_UID} characters")
    resource = _object(request.get("resource"), "request.resource")
    return Review(
        uid=uid,
        operation=_text(request, "operation"),
        group=_text(resource, "group"),
        version=_text(resource, "version"),
        resource=_text(resource, "resource"),
        subresource=_text(request, "subResource"),
        namespace=_text(request, "namespace"),
        name=_text(request, "name"),
        object=request.get("object"),
        old=request.get("oldObject"),
        kind=_text(_object(request.get("kind") or {}, "request.kind"), "kind"),
    )


def _given_name(value: Any) -> str:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    name = metadata.get("generateName") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def answer(review: Review, verdict: Verdict) -> bytes:
    """The body that answers a review."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = _status(verdict, review.subject)
    elif verdict.patch:
        patch = json.dumps(verdict.patch, separators=(",", ":")).encode()
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
    if verdict.warnings:
        response["warnings"] = list(_warnings(verdict.warnings))
    # As ASCII, which holds whatever characters the request had in it.
    body = {"apiVersion": API_VERSION, "kind": KIND, "response": response}
    return json.dumps(body, separators=(",", ":")).encode()


_REASONS: Final = {400: "BadRequest", 403: "Forbidden", 422: "Invalid"}


def _status(verdict: Verdict, subject: Mapping[str, str]) -> dict[str, Any]:
    told = verdict.violations[:MOST_CAUSES]
    more = len(verdict.violations) - len(told)
    # kubectl shows the causes if there are any, and the message only if there are none.
    causes = [
        {"reason": "FieldValueInvalid", "field": one.path, "message": one.message}
        for one in told
        if any(each.path for each in told)
    ]
    return {
        "status": "Failure",
        "code": verdict.code,
        "reason": _REASONS[verdict.code],
        "message": "; ".join([*map(str, told), *([f"and {more} more"] if more else [])]),
        **({"details": {**subject, "causes": causes}} if causes else {}),
    }


def _warnings(warnings: Sequence[str]) -> Iterable[str]:
    left = LONGEST_WARNINGS
    for index, warning in enumerate(warnings):
        text = "".join(letter if letter.isprintable() else " " for letter in warning)
        if len(text) > LONGEST_WARNING:
            text = f"{text[: LONGEST_WARNING - 3]}..."
        left -= len(text)
        if left < LONGEST_WARNING and index + 1 < len(warnings):
            yield f"and {len(warnings) - index} more warnings"
            return
        yield text


def _json(body: bytes) -> Any:
    try:
        return json.loads(
            body.decode(), object_pairs_hook=_unique, parse_constant=_no_such_number
        )
    except (ValueError, RecursionError) as error:
        why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise MalformedError(f"the body must be JSON: {why}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {shown(twice)} occurs twice in one object")
    return found


def _no_such_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number in JSON")


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise MalformedError(f"{what} must be an object, is {shown(value)}")
    return value


def _text(part: Mapping[str, Any], key: str) -> str:
    value = part.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedError(f"{key} must be a text, is {shown(value)}")
    return value

"""The question that a webhook is asked, and how its answer is read. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from hekla.local.kinds import errors
from hekla.local.kinds.errors import ApiError
from hekla.local.kinds.registry import NAMESPACES, Kind, Object
from hekla.local.patches.standard import JsonPatch, MalformedError
from hekla.local.verbs.steps import Step

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
USER: Final[Mapping[str, Any]] = {
    "username": "system:unsecured",
    "groups": ["system:masters", "system:authenticated"],
}
"""There is no login here: whoever reaches the port may do everything."""
_LONGEST_TEXT: Final = 200


class CallError(Exception):
    """There is no answer; the text says why."""


class UnreadableError(Exception):
    """What came back is no answer."""


class Answer(NamedTuple):
    """What a webhook says."""

    allowed: bool
    status: Mapping[str, Any]
    patch: JsonPatch | None
    warnings: Sequence[str]


def question(step: Step, kind: Kind, uid: str, options: Mapping[str, Any]) -> bytes:
    """The body to send to somebody who sees the object as ``kind``, a version of its own."""
    about: Object = step.value if step.value is not None else _old(step)
    part = {"subResource": step.subresource, "requestSubResource": step.subresource}
    namespace = step.name if step.kind is NAMESPACES else step.namespace
    request = {
        "uid": uid,
        "kind": _kind(seen(about, step, kind)),
        "resource": _resource(kind),
        "requestKind": _kind(about),
        "requestResource": _resource(step.kind),
        **(part if step.subresource else {}),
        **({"name": step.name} if step.name else {}),
        **({"namespace": namespace} if namespace else {}),
        "operation": step.operation,
        "userInfo": USER,
        "object": None if step.value is None else seen(step.value, step, kind),
        "oldObject": None if step.old is None else seen(_old(step), step, kind),
        "dryRun": step.dry_run,
        "options": options,
    }
    return orjson.dumps({"kind": KIND, "apiVersion": API_VERSION, "request": request})


def seen(value: Object, step: Step, kind: Kind) -> Object:
    """An object of the step as somebody sees it who knows it as ``kind``."""
    if kind is step.kind:
        return value
    return {**value, "apiVersion": kind.api_version}


def _old(step: Step) -> Object:
    assert step.old is not None, "there is an object before, after, or both"
    return {**step.old.object(), "apiVersion": step.kind.api_version}


def _kind(value: Object) -> Mapping[str, str]:
    group, _, version = value["apiVersion"].rpartition("/")
    return {"group": group, "version": version, "kind": value["kind"]}


def _resource(kind: Kind) -> Mapping[str, str]:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def read(body: bytes, uid: str, *, mutates: bool) -> Answer:
    """What the answer ``body`` to the question ``uid`` says.

    Raises:
        UnreadableError: it is none.
        ApiError: its patch is none.
    """
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UnreadableError(f"the answer is not JSON: {error}") from error
    if not isinstance(review, dict):
        raise UnreadableError("the answer is not an object")
    given = (review.get("apiVersion"), review.get("kind"))
    if given != (API_VERSION, KIND):
        raise UnreadableError(
            f"expected webhook response of {API_VERSION}, Kind={KIND}, got {given[0]}, "
            f"Kind={given[1]}"
        )
    response = review.get("response")
    if response is None:
        raise UnreadableError("webhook response was absent")
    if not isinstance(response, dict):
        raise UnreadableError("response must be an object")
    if response.get("uid") != uid:
        raise UnreadableError(
            f'expected response.uid="{uid}", got {_short(response.get("uid"))}'
        )
    allowed = response.get("allowed", False)
    if not isinstance(allowed, bool):
        raise UnreadableError(f"response.allowed must be true or false, is {_short(allowed)}")
    status = response.get("status") or {}
    if not isinstance(status, dict):
        raise UnreadableError("response.status must be an object")
    warnings = response.get("warnings") or []
    if not isinstance(warnings, list) or not all(isinstance(text, str) for text in warnings):
        raise UnreadableError("response.warnings must be a list of texts")
    operations = _operations(response, mutates=mutates)
    patch = None if operations is None else _patch(operations)
    return Answer(allowed, status, patch, warnings)


def _operations(response: Mapping[str, Any], *, mutates: bool) -> bytes | None:
    patch, type_ = response.get("patch"), response.get("patchType")
    if not mutates and (patch or type_ is not None):
        field = "patch" if patch else "patchType"
        raise UnreadableError(f"validating webhook may not return response.{field}")
    if not patch:
        if type_ is not None:
            raise UnreadableError("webhook returned response.patchType but not response.patch")
        return None
    if type_ is None:
        raise UnreadableError("webhook returned response.patch but not response.patchType")
    if type_ != "JSONPatch":
        raise UnreadableError(f"webhook returned invalid response.patchType of {_short(type_)}")
    try:
        return base64.b64decode(patch, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise UnreadableError(f"response.patch is not base64: {error}") from error


def _patch(operations: bytes) -> JsonPatch:
    try:
        return JsonPatch(orjson.loads(operations))
    except (orjson.JSONDecodeError, MalformedError) as error:
        raise errors.internal(f"the webhook's patch cannot be read: {error}") from error


def denial(name: str, status: Mapping[str, Any]) -> ApiError:
    """What the client is told when the webhook of that name refuses."""
    code = status.get("code")
    if not isinstance(code, int) or not 400 <= code <= 599:
        code = 400
    reason, message = status.get("reason"), status.get("message")
    reason = reason if isinstance(reason, str) else ""
    told = message if isinstance(message, str) and message else reason
    why = f": {told}" if told else " without explanation"
    details = status.get("details")
    return ApiError(
        code,
        reason,
        f'admission webhook "{name}" denied the request{why}',
        details if isinstance(details, dict) else None,
    )


def failure(name: str, why: str) -> ApiError:
    """What the client is told when the webhook of that name gives no answer."""
    return errors.internal(f'failed calling webhook "{name}": {why}')


def _short(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"

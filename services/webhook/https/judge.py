"""From a review to a verdict, by the rules. Pure, but for what the world has to be asked.

Mutation completes and never refuses: what it cannot read it leaves as it is, so that the
definition's own checks, and then validation, say all that is wrong with it.
"""

from __future__ import annotations

from typing import Any, Final

from hekla.api import decode
from hekla.api.decode import encode
from hekla.api.fields import shown
from hekla.api.meta import ObjectMeta
from hekla.api.plain import require_plain
from hekla.api.queue import Queue
from hekla.domain.errors import InvalidError, Violation
from services.webhook.https import patch
from services.webhook.https.envelope import Review, Verdict, refusal
from services.webhook.https.inventory import ENDPOINTS, Endpoint
from services.webhook.rules.admission import Operation, admit
from services.webhook.rules.pod import Pod
from services.webhook.rules.world import Limits, World

MODELS: Final = {
    endpoint.resource: decode.KINDS.get((endpoint.resource.api_version, endpoint.resource.kind))
    for endpoint in ENDPOINTS.values()
}
"""What objects are read as; pods have no model."""

_LENIENT: Final = frozenset({"/hypernodes/validate"})
"""Where an operation that is not expected is allowed, as with Volcano."""


def judge(endpoint: Endpoint, review: Review, world: World, limits: Limits) -> Verdict:
    """The verdict on what ``review`` asks at ``endpoint``."""
    misdirected = _misdirected(endpoint, review)
    if misdirected is not None:
        return misdirected
    operation = Operation(review.operation)
    raw = review.old if operation is Operation.DELETE else review.object
    if not isinstance(raw, dict) and operation is not Operation.DELETE:
        return refusal(f"request.object must be an object, is {shown(raw)}")
    if endpoint.mutates:
        return _mutation(endpoint, review, world, limits)
    if operation is Operation.DELETE:
        return _deletion(endpoint, review, world, limits)
    return _validation(endpoint, review, operation, world, limits)


def _misdirected(endpoint: Endpoint, review: Review) -> Verdict | None:
    wanted = endpoint.resource
    if (review.group, review.version, review.resource, review.subresource) != (
        wanted.group,
        wanted.version,
        wanted.plural,
        "",
    ):
        slash = f"/{review.subresource}" if review.subresource else ""
        found = f"{review.resource}{slash} of {review.group or 'core'}/{review.version}"
        return refusal(
            f"expected {wanted.plural} of {wanted.api_version} at {endpoint.path}, got {found}"
        )
    if review.operation not in endpoint.operations:
        if endpoint.path in _LENIENT and review.operation in {"DELETE", "CONNECT"}:
            return Verdict()
        expected = " or ".join(endpoint.operations)
        return refusal(f"expected {expected} at {endpoint.path}, got {shown(review.operation)}")
    return None


def _mutation(endpoint: Endpoint, review: Review, world: World, limits: Limits) -> Verdict:
    raw = _placed(endpoint, review, review.object)
    try:
        found = _read(endpoint, raw)
    except InvalidError:
        return Verdict()
    filled = admit(Operation.CREATE, found, None, world, limits).object
    return Verdict(patch=list(patch.changes(_encoded(found), _encoded(filled), raw)))


def _deletion(endpoint: Endpoint, review: Review, world: World, limits: Limits) -> Verdict:
    try:
        found = _read(endpoint, _placed(endpoint, review, review.old))
    except InvalidError:
        # It must be possible to get rid of what nobody can read; a queue is judged by its name.
        if endpoint.resource.kind != "Queue" or not review.name:
            return Verdict()
        found = Queue(metadata=ObjectMeta(name=review.name))
    verdict = admit(Operation.DELETE, found, None, world, limits)
    return Verdict(verdict.violations, verdict.warnings, code=403)


def _validation(
    endpoint: Endpoint, review: Review, operation: Operation, world: World, limits: Limits
) -> Verdict:
    old, warnings = None, []
    if operation is Operation.UPDATE:
        if _is_going(review):
            return Verdict()
        try:
            old = _read(endpoint, _placed(endpoint, review, review.old))
        except InvalidError as error:
            # It was stored before there was such a rule. Whoever mends it must not be stopped.
            operation = Operation.CREATE
            warnings = [f"judged like a new object, since the old cannot be read: {error}"]
    try:
        found = _read(endpoint, _placed(endpoint, review, review.object))
    except InvalidError as error:
        return Verdict(error.violations or [Violation("", str(error))], warnings)
    verdict = admit(operation, found, old, world, limits)
    return Verdict(verdict.violations, [*warnings, *verdict.warnings])


def _is_going(review: Review) -> bool:
    """Whether this only takes a finalizer, or the like, off something that is being deleted."""
    new, old = review.object, review.old
    return (
        isinstance(old, dict)
        and isinstance(new.get("metadata"), dict)
        and bool(new["metadata"].get("deletionTimestamp"))
        and new.get("spec") == old.get("spec")
    )


def _read(endpoint: Endpoint, raw: Any) -> Any:
    """The object, of the endpoint's kind.

    Raises:
        InvalidError: it is none.
    """
    model = MODELS[endpoint.resource]
    if model is None:
        require_plain(raw)
        return Pod(raw)
    found = decode.read(raw)
    if not isinstance(found, model):
        message = f"must be {endpoint.resource.kind}, is {found.kind}"
        raise InvalidError.of([Violation("kind", message)])
    return found


def _placed(endpoint: Endpoint, review: Review, raw: Any) -> Any:
    """``raw`` in the namespace it is sent to, which it need not name."""
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    if not endpoint.resource.namespaced or not review.namespace:
        return raw
    if not isinstance(metadata, dict) or metadata.get("namespace"):
        return raw
    return {**raw, "metadata": {**metadata, "namespace": review.namespace}}


def _encoded(found: Any) -> Any:
    return found.raw if isinstance(found, Pod) else encode(found)

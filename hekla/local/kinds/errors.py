"""What the API answers when it does not do what was asked: Kubernetes ``Status`` objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hekla.domain.errors import Violation
from hekla.local.kinds.registry import Kind

_TYPE_ERROR: Final = " in body must be of type "


_IN_CONTAINERS: Final = frozenset({"exec", "attach", "portforward", "proxy"})


class ApiError(Exception):
    """A refusal with its HTTP code and its machine-readable reason."""

    def __init__(
        self, code: int, reason: str, message: str, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details

    def status(self) -> dict[str, Any]:
        """The body of the answer."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            status["details"] = self.details
        return status


def _details(kind: Kind, name: str, **more: Any) -> dict[str, Any]:
    details = {"name": name, "group": kind.group, "kind": kind.plural, **more}
    return {key: value for key, value in details.items() if value != ""}


def bad_request(message: str) -> ApiError:
    """The request makes no sense, whatever the state is."""
    return ApiError(400, "BadRequest", message)


def forbidden(kind: Kind, name: str, why: str, *, cause: str = "") -> ApiError:
    """A rule of admission says no."""
    causes = {"causes": [{"reason": cause, "message": why}]} if cause else {}
    return ApiError(
        403,
        "Forbidden",
        f'{kind.resource} "{name}" is forbidden: {why}',
        _details(kind, name, **causes),
    )


def not_found(kind: Kind, name: str) -> ApiError:
    """No object of that name."""
    message = f'{kind.resource} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(kind, name))


def no_such_path(path: str = "") -> ApiError:
    """No kind, subresource or page is served there."""
    what = path.rstrip("/").rpartition("/")[2]
    if what in _IN_CONTAINERS:
        return method_not_allowed(f"pods/{what}, which the local cluster does not have")
    message = "the server could not find the requested resource"
    # Clients rely on details, though there is nothing to say.
    causes = [{"reason": "UnexpectedServerResponse", "message": "404 page not found"}]
    return ApiError(404, "NotFound", message, {"causes": causes})


def not_acceptable(form: str) -> ApiError:
    """The caller takes no answer in a form that is served."""
    message = f"only the following media types are accepted: {form}"
    return ApiError(406, "NotAcceptable", message)


def method_not_allowed(what: str) -> ApiError:
    """The path exists, but not with this method."""
    return ApiError(405, "MethodNotAllowed", f"the server does not allow this method on {what}")


def already_exists(kind: Kind, name: str) -> ApiError:
    """The name is taken."""
    message = f'{kind.resource} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(kind, name))


def conflict(kind: Kind, name: str, why: str) -> ApiError:
    """The object is not as the caller believes."""
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(kind, name))


def modified(kind: Kind, name: str) -> ApiError:
    """Somebody else wrote first."""
    why = (
        "the object has been modified; "
        "please apply your changes to the latest version and try again"
    )
    return conflict(kind, name, why)


def expired(message: str) -> ApiError:
    """The resource version is older than what is remembered."""
    return ApiError(410, "Expired", message)


def too_large(limit: int) -> ApiError:
    """The body is longer than any object may be."""
    return ApiError(
        413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit} bytes"
    )


def unsupported_media_type(message: str) -> ApiError:
    """The body is in a form that is not served; the message says which one is."""
    return ApiError(415, "UnsupportedMediaType", message)


def invalid(kind: Kind, name: str, violations: Sequence[Violation]) -> ApiError:
    """The object breaks rules; each is a cause."""
    causes = [
        {"reason": _cause(found.message), "message": found.message, "field": found.path}
        for found in violations
    ]
    texts = [str(found) for found in violations]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return ApiError(
        422,
        "Invalid",
        f'{kind.full_name} "{name}" is invalid: {listed}',
        {"name": name, "group": kind.group, "kind": kind.name, "causes": causes},
    )


def _cause(message: str) -> str:
    for prefix, reason in (
        ("Required value", "FieldValueRequired"),
        ("Unsupported value", "FieldValueNotSupported"),
        ("Forbidden", "FieldValueForbidden"),
        ("Duplicate value", "FieldValueDuplicate"),
        ("Too long", "FieldValueTooLong"),
        ("Too many", "FieldValueTooMany"),
    ):
        if message.startswith(prefix):
            return reason
    if _TYPE_ERROR in message:
        return "FieldValueTypeInvalid"
    return "FieldValueInvalid"


def unfit(why: str) -> ApiError:
    """A patch does not fit the object."""
    # Without details, for kubectl shows the message only where there are none.
    message = f"the server rejected our request due to an error in our request: {why}"
    return ApiError(422, "Invalid", message)


def disrupted(message: str, cause: str, seconds: int) -> ApiError:
    """A disruption budget says: not now."""
    causes = [{"reason": "DisruptionBudget", "message": cause}]
    details = {"causes": causes, "retryAfterSeconds": seconds}
    return ApiError(429, "TooManyRequests", message, details)


def too_new(wanted: int, current: int) -> ApiError:
    """The caller has seen a version that this store has not."""
    message = f"Too large resource version: {wanted}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return ApiError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def internal(message: str) -> ApiError:
    """Our fault."""
    return ApiError(500, "InternalError", f"Internal error occurred: {message}")

"""What an API server answers, as errors of the domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hekla.domain.errors import (
    AlreadyExistsError,
    ConflictError,
    CursorExpiredError,
    DeniedError,
    DomainError,
    ExhaustedError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)

ALREADY_EXISTS: Final = "AlreadyExists"

_BY_STATUS: Final[Mapping[int, type[DomainError]]] = {
    400: InvalidError,
    401: DeniedError,
    403: DeniedError,
    404: NotFoundError,
    409: ConflictError,
    410: CursorExpiredError,
    413: InvalidError,
    422: InvalidError,
    429: ExhaustedError,
}


def error_for(status: int, reason: str, message: str) -> DomainError:
    """The error that stands for an answer that is no success."""
    text = message or reason or f"the API server answered {status}"
    if status == 409 and reason == ALREADY_EXISTS:
        return AlreadyExistsError(text)
    return _BY_STATUS.get(status, UnavailableError)(text)

"""Command: asks for an action on a job or a queue. It has neither spec nor status."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hekla.api.fields import Bound, Model, empty_for_null
from hekla.api.meta import ObjectMeta, OwnerReference
from hekla.domain.names import BUS_API_VERSION


class Command(Model):
    """An action that somebody asks for."""

    api_version: Annotated[str, Bound(one_of=(BUS_API_VERSION,))] = BUS_API_VERSION
    kind: Annotated[str, Bound(one_of=("Command",))] = "Command"
    metadata: Annotated[ObjectMeta, empty_for_null] = Field(default_factory=ObjectMeta)
    action: str | None = None
    target: OwnerReference | None = None
    reason: str | None = None
    message: str | None = None

"""What a service brings along for a kind: where its rows are, and what is done to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from hekla.domain.names import Key
from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.deciding import Decide, Row, RowStep, Rules, decide
from hekla.kube.resources import Resource

USUAL: Final = Rules()


class DeposedError(Exception):
    """This process does not lead any more: nothing was done."""


class SpentError(Exception):
    """What a custom resource stands for is over and done with: nothing was done.

    The one that is to be stored is what somebody forgot to delete, or could not.
    """


class Rows(Protocol):
    """The rows of one kind.

    Every method may raise UnavailableError or ConflictError: it is tried again. Steps are only
    taken while this process leads; DeposedError says that it does no more.
    """

    def read(self, keys: Collection[Key]) -> Mapping[Key, Row]:
        """The rows of these names that there are."""

    def keys(self) -> Collection[Key]:
        """Names of all rows that have a custom resource, or shall have one."""

    def take(self, step: RowStep) -> None:
        """Do one step, in one transaction; done before, it does nothing.

        Raises:
            InvalidError, DeniedError: the custom resource cannot be taken as it is; its owner
                is told, and it is tried again when it changes.
            SpentError: the custom resource is to be deleted.
            PreconditionError, ExhaustedError: it cannot be taken now; its owner is told, and
                it is tried again.
        """

    def take_many(self, steps: Sequence[RowStep]) -> None:
        """As :meth:`take`, all in one transaction or none: who raises has each taken alone."""


@dataclass(frozen=True, slots=True)
class Mirrored:
    """One kind that is kept on both sides."""

    resource: Resource
    rows: Rows
    rules: Rules = USUAL
    status_apart: bool = True
    """Whether its definition has a status subresource."""
    decide: Decide = decide
    complaint: Complaint | None = None
    """Makes the status that tells why a custom resource is not taken; without it, only an
    event does."""

    @property
    def name(self) -> str:
        """How logs and metrics call it."""
        return self.resource.plural


class Complaint(Protocol):
    """Makes a status."""

    def __call__(
        self, custom: Custom, reason: str, message: str, since: str
    ) -> Mapping[str, Any]:
        """The status of ``custom`` with the complaint in it; ``since`` is an instant."""

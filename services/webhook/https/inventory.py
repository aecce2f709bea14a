"""The paths that API servers call, under Volcano's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from hekla.kube import resources
from hekla.kube.resources import Resource

MUTATE: Final = "mutate"
VALIDATE: Final = "validate"

_CREATE: Final = ("CREATE",)
_WRITES: Final = ("CREATE", "UPDATE")
_ALL: Final = ("CREATE", "UPDATE", "DELETE")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path: what is asked there, and of which objects."""

    path: str
    name: str
    """The webhook's, in the configuration of API servers."""
    resource: Resource
    operations: tuple[str, ...]
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    """What API servers do while nobody answers."""
    timeout_seconds: int = 10
    """How long they wait."""

    @property
    def mutates(self) -> bool:
        """Whether it completes objects, rather than judging them."""
        return self.path.endswith(f"/{MUTATE}")


def _endpoint(kind: Resource, what: str, *operations: str, name: str = "") -> Endpoint:
    return Endpoint(
        path=f"/{kind.plural}/{what}",
        name=f"{name or what + kind.kind.lower()}.volcano.sh",
        resource=kind,
        operations=operations,
    )


def _pods(what: str) -> Endpoint:
    # Selectors match labels, not schedulerName: every pod of the cluster comes by, and none of
    # them may have to wait for us.
    return Endpoint(
        path=f"/pods/{what}",
        name=f"{what}pod.volcano.sh",
        resource=resources.PODS,
        operations=_CREATE,
        failure_policy="Ignore",
        timeout_seconds=3,
    )


ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    endpoint.path: endpoint
    for endpoint in (
        _endpoint(resources.JOBS, MUTATE, *_CREATE),
        _endpoint(resources.JOBS, VALIDATE, *_WRITES),
        _endpoint(resources.CRONJOBS, VALIDATE, *_WRITES),
        _endpoint(resources.PODGROUPS, MUTATE, *_CREATE),
        _endpoint(resources.PODGROUPS, VALIDATE, *_WRITES),
        _endpoint(resources.QUEUES, MUTATE, *_CREATE),
        _endpoint(resources.QUEUES, VALIDATE, *_ALL),
        _pods(MUTATE),
        _pods(VALIDATE),
        _endpoint(resources.JOBFLOWS, VALIDATE, *_WRITES),
        _endpoint(resources.HYPERNODES, VALIDATE, *_WRITES, name="validatehypernodes"),
    )
}
"""All that is served, by path."""

REGISTERED: Final = tuple(path for path in ENDPOINTS if not path.startswith("/pods/"))
"""What API servers are told of unless settings say otherwise: each pod would cost a call."""

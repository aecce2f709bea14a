"""Puts the flow service's mirrors together."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from hekla.domain.errors import InvalidError
from hekla.domain.names import Key
from hekla.kube.client import KubeClient
from hekla.kube.mirror.door import Door
from hekla.kube.mirror.engine import Engine
from hekla.kube.mirror.standing import Installed, Mirror
from hekla.kube.resources import JOBFLOWS, JOBTEMPLATES
from hekla.kube.rival import LOOK_EVERY, Rival
from hekla.lifecycle import repeating
from hekla.rpc.admission import Admission
from hekla.store import job_flows, job_templates
from hekla.store.database import Database
from hekla.store.election import Election
from hekla.store.following import following
from hekla.store.hub import Hub, Item
from hekla.store.watching import metadata_of
from services.flow.mirror.flows import mirrored_flows
from services.flow.mirror.templates import mirrored_templates

LEASE: Final = "flow-mirror"

log = logging.getLogger(__name__)


def mirror(
    database: Database,
    admission: Admission,
    kube: KubeClient,
    hub: Hub,
    election: Election,
    *,
    hindrance: Callable[[], str | None],
) -> Mirror:
    """The mirror of this process."""

    def engines() -> Sequence[Engine]:
        hold = election.term()
        kinds = (
            mirrored_flows(database, admission, hold, kube),
            mirrored_templates(database, admission, hold),
        )
        return [Engine(kind, kube) for kind in kinds]

    @contextmanager
    def beside(made: Sequence[Engine]) -> Iterator[None]:
        of_kind = dict(zip((job_flows.KIND, job_templates.KIND), made, strict=True))

        def take(items: Sequence[Item]) -> None:
            for kind, engine in of_kind.items():
                engine.mark(Key(*metadata_of(one)) for one in items if one.kind == kind)

        def lost() -> None:
            for engine in made:
                engine.mark_all()

        with following(hub, list(of_kind), take=take, lost=lost):
            yield

    return Mirror(
        kube,
        [JOBFLOWS, JOBTEMPLATES],
        ballot=election,
        engines=engines,
        beside=beside,
        hindrance=hindrance,
    )


@dataclass(frozen=True, slots=True)
class Mirroring:
    """What the rest of the service sees of the mirror; all of it may be missing."""

    mirror: Mirror | None = None
    flows: Door | None = None
    """By which calls write the custom resources of flows."""
    templates: Door | None = None

    @classmethod
    def start(
        cls,
        running: ExitStack,
        kubeconfig: str,
        *,
        database: Database,
        admission: Admission,
        hub: Hub,
    ) -> Mirroring:
        """Mirror until ``running`` ends, if there is a Kubernetes at all."""
        try:
            kube = running.enter_context(
                KubeClient.start(kubeconfig or None, isolated=False, service="flow")
            )
        except InvalidError as error:
            log.info("there are no custom resources", extra={"why": str(error)})
            return cls()
        holder = f"{socket.gethostname()}:{os.getpid()}:{uuid4()}"
        election = Election(database, LEASE, holder=holder)
        rival = Rival(kube)
        made = mirror(database, admission, kube, hub, election, hindrance=rival.problem)

        def look_for_rival() -> bool:
            return made.installed is Installed.YES and rival.look()

        running.enter_context(made.running())
        running.enter_context(repeating("rival", look_for_rival, idle=LOOK_EVERY))
        flows = mirrored_flows(database, admission, election.hold, kube)
        templates = mirrored_templates(database, admission, election.hold)
        return cls(made, Door(kube, flows, made), Door(kube, templates, made))

    def mirrored(self) -> bool:
        """Whether flows have custom resources, or may have."""
        return self.mirror is not None and self.mirror.installed is not Installed.NO

    def problem(self) -> str | None:
        """Why the mirror does not work, or None; serves as a readiness check."""
        if self.mirror is None or self.mirror.installed is Installed.UNKNOWN:
            return None
        return self.mirror.problem()

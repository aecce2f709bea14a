"""The table of admission through gRPC, with the table's world in Postgres."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from uuid import uuid4

import grpc
import pytest
from sqlalchemy import text

from hekla.api import decode
from hekla.api.pod_group import PodGroupSpec
from hekla.api.queue import Queue
from hekla.domain import resources
from hekla.domain.names import Key
from hekla.domain.resources import Resources
from hekla.rpc.channel import connect
from hekla.rpc.server import serving
from hekla.store import pod_groups, queues
from hekla.store.database import Database
from hekla.v1 import admission_service_pb2_grpc
from services.webhook.rules.world import Limits
from services.webhook.servicer import SERVICES, AdmissionServicer
from tests.support.admission_doors import by_grpc, library, limits_of
from tests.support.admission_rows import NAMESPACES, NODE, NONE, QUEUES, Row
from tests.support.admission_table import ROWS
from tests.support.admission_verdicts import check

Stub = admission_service_pb2_grpc.AdmissionServiceStub


class TableCluster:
    """The nodes and namespaces of the table."""

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        return NAMESPACES.get(name, {})

    def nodes(self) -> Sequence[Resources]:
        return [resources.parse_list(NODE["status"]["allocatable"])]

    def queue(self, name: str) -> None:
        """All queues are stored."""
        del name

    def has_lost(self, queue: str, uid: str) -> bool:
        """And stay."""
        del queue, uid
        return False


class Servers:
    """A server for each way in which rows want an installation."""

    def __init__(self, database: Database, running: ExitStack) -> None:
        self._database = database
        self._running = running
        self._stubs: dict[Limits, Stub] = {}

    def stub(self, row: Row) -> Stub:
        limits = limits_of(row)
        if limits not in self._stubs:
            servicer = AdmissionServicer(self._database, limits, TableCluster())

            def register(server: grpc.Server) -> None:
                admission_service_pb2_grpc.add_AdmissionServiceServicer_to_server(
                    servicer, server
                )

            server = self._running.enter_context(
                serving(register, listen="127.0.0.1:0", threads=2, services=SERVICES)
            )
            channel = self._running.enter_context(connect(server.address))
            self._stubs[limits] = Stub(channel)
        return self._stubs[limits]


def fill(database: Database) -> None:
    """Store the table's queues, and a group of which one pod runs."""
    with database.transaction() as session:
        queues.make_well_known(session)
        for raw in QUEUES:
            queue = decode.read(raw)
            assert isinstance(queue, Queue)
            queues.make(session, queue, uid=uuid4())
            if queue.status.state:
                session.execute(
                    text("update queue set state = :state where name = :name"),
                    {"state": queue.status.state, "name": queue.metadata.name},
                )
        key = Key("default", "busy")
        spec = PodGroupSpec(queue="busy")
        pod_groups.make(session, key, spec, job=None, labels={}, annotations={})
        session.execute(text("update pod_group set scheduling = '{\"running\": 1}'"))


@pytest.fixture
def servers(database: Database) -> Iterator[Servers]:
    fill(database)
    with ExitStack() as running:
        yield Servers(database, running)


def test_each_row_is_judged_through_grpc_as_by_the_rules(servers: Servers) -> None:
    """C15."""
    door = by_grpc(servers.stub)
    wrong = []
    for row in ROWS:
        found = door(row)
        wrong += [said] if (said := check(row, found)) else []
        itself = library(row)
        # Messages cannot tell an empty list from none, of which two rules may complain.
        empty = NONE in (row.refuse or {}).values()
        if found is not None and (
            (found.rules != itself.rules and not empty) or found.warnings != itself.warnings
        ):
            wrong.append(f"{row.source}: {found} is not {itself}")

    assert wrong == []

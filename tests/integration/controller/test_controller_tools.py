"""The doctor and the uninstaller, over a real Postgres and a local cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from hekla.domain.errors import PreconditionError
from hekla.kube.client import KubeClient
from hekla.kube.resources import PODS
from hekla.rpc.http import probes
from hekla.store import health, history, jobs, migrate
from hekla.store.database import Database
from services.controller import uninstall
from services.controller.doctor import measuring
from services.controller.doctor.judging import State
from services.controller.uninstall import UninstallConfig
from tests.support.local_cluster import LocalCluster
from tests.support.objects import make_job
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    running = LocalCluster(
        tmp_path_factory.mktemp("tools"), "--runtime=simulate", "--simulate-duration=1h"
    ).start()
    yield running
    running.end()


@pytest.fixture(scope="module")
def kube(cluster: LocalCluster) -> Iterator[KubeClient]:
    with KubeClient.start(str(cluster.kubeconfig), isolated=False) as client:
        yield client


def findings(url: str, kubeconfig: str, **probed: str) -> dict[str, State]:
    found = measuring.look(database_url=url, kubeconfig=kubeconfig, home="/", probes=probed)
    return {one.check: one.state for one in found}


def test_the_doctor_looks_at_everything(postgres_url: str, cluster: LocalCluster) -> None:
    ready = {"feed": lambda: None}
    busy = {"feed": lambda: "is 9 s behind"}
    with probes("127.0.0.1:0", ready=ready) as one, probes("127.0.0.1:0", ready=busy) as two:
        found = findings(
            postgres_url,
            str(cluster.kubeconfig),
            controller=one.address,
            flow=two.address,
            webhook="127.0.0.1:1",
        )

    wrong = {check for check, state in found.items() if state is State.FAIL}
    assert wrong == {"scheduler leads", "service flow", "service webhook"}
    assert {
        "versions", "postgres", "connections", "oldest transaction", "database size", "clock",
        "schema", "work", "service controller", "kubernetes", "disk",
    } <= set(found)  # fmt: skip


def test_the_doctor_goes_on_where_nothing_answers(tmp_path: Path) -> None:
    found = findings(f"postgresql://nobody@/none?host={tmp_path}", str(tmp_path / "none"))

    assert (found["postgres"], found["kubernetes"]) == (State.FAIL, State.FAIL)
    assert found["services"] is State.WARN
    assert findings("", str(tmp_path / "none"))["postgres"] is State.FAIL


def test_an_empty_database_is_to_be_migrated(postgres: Any, cluster: LocalCluster) -> None:
    url = postgres.make_database("doctor_empty")

    found = list(
        measuring.look(database_url=url, kubeconfig=str(cluster.kubeconfig), home="", probes={})
    )

    [schema] = [one for one in found if one.check == "schema"]
    assert (schema.state, schema.todo) == (State.FAIL, "run 'hekla migrate'")


def test_the_oldest_transaction_is_named_and_our_connections_counted(
    postgres_url: str,
) -> None:
    one, other = Database(postgres_url, pool_size=1), Database(postgres_url, pool_size=1)
    with other.transaction() as open_one:
        jobs.insert_many(open_one, [(uuid4(), make_job("open"))])
        with one.transaction() as session:
            found = health.look(session)
    one.close()
    other.close()

    assert found.ours == 1
    assert found.oldest is not None
    assert "hekla, idle in transaction" in found.oldest.who


def pod(name: str, uid: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"hekla.io/job-uid": uid},
            "finalizers": ["hekla.io/outcome"],
        },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "none", "command": ["true"]}],
        },
    }


def test_uninstalling_tells_first_then_takes_our_pods_and_nobody_elses(
    postgres_url: str, cluster: LocalCluster, kube: KubeClient
) -> None:
    database = Database(postgres_url, pool_size=1)
    known, past = uuid4(), uuid4()
    with database.transaction() as session:
        jobs.insert_many(session, [(known, make_job("known")), (past, make_job("past"))])
        history.retire(session, jobs.get_by_uid(session, past, to_remove=True))
    owners = {"ours": str(known), "late": str(past), "strange": str(uuid4()), "odd": "no-uid"}
    made = kube.create_many(PODS, [pod(name, uid) for name, uid in owners.items()])
    assert all(reply.ok for reply in made)
    config = UninstallConfig(database_url=postgres_url, kubeconfig=str(cluster.kubeconfig))
    told: list[str] = []

    def names() -> set[str]:
        return {it["metadata"]["name"] for it in kube.list(PODS)[0]}

    uninstall.uninstall(config, tell=told.append)

    assert told == [
        "2 pods of Hekla's jobs:",
        "  default/late",
        "  default/ours",
        "2 pods of jobs this database never knew, left alone:",
        "  default/odd",
        "  default/strange",
        "nothing was removed; --yes removes it",
    ]
    with pytest.raises(PreconditionError, match="stop the services first"):
        uninstall.uninstall(replace(config, yes=True), tell=told.append)
    assert names() == set(owners)

    database.close()
    wait_until(lambda: _alone(postgres_url), what="our connection to be gone")
    uninstall.uninstall(replace(config, yes=True, purge=True), tell=told.append)

    assert names() == {"odd", "strange"}
    assert told[-1].endswith("Hekla's tables were dropped")
    again = Database(postgres_url, pool_size=1)
    assert migrate.current(again) is None
    again.close()
    assert migrate.migrate(postgres_url) == migrate.head()


def _alone(url: str) -> bool:
    database = Database(url, pool_size=1)
    try:
        with database.transaction() as session:
            return health.look(session).ours == 0
    finally:
        database.close()


def test_only_our_finalizer_is_taken_from_a_pod() -> None:
    found = pod("p", "u")
    found["metadata"] |= {
        "uid": "1", "resourceVersion": "2", "finalizers": ["a.io/b", "hekla.io/outcome"],
    }  # fmt: skip

    patch = uninstall.without_finalizer(found)

    assert patch.body["metadata"] == {
        "uid": "1", "resourceVersion": "2", "finalizers": ["a.io/b"],
    }  # fmt: skip

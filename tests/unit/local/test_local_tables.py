"""What ``kubectl get`` shows, cell by cell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from hekla.api.crd import DEFINITIONS
from hekla.domain import timestamps
from hekla.local.answers import columns
from hekla.local.answers.paging import Page
from hekla.local.answers.tables import Tables
from hekla.local.kinds import jsonpath, registry
from hekla.local.kinds.errors import ApiError
from hekla.local.kinds.registry import PODS, Kind, Object
from hekla.local.rules import definitions
from hekla.local.serving import accepting
from hekla.local.serving.routing import Request
from hekla.local.storage.memory import Entry, entry_of

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
MADE = timestamps.to_text(NOW - timedelta(minutes=5))
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def named(name: str = "x", **more: Any) -> Object:
    return {"metadata": {"name": name, "creationTimestamp": MADE}, **more}


def pod(*statuses: Object, spec: Object | None = None, **status: Any) -> Object:
    containers = [{"name": each.get("name", "main")} for each in statuses] or [{"name": "main"}]
    if statuses:
        status["containerStatuses"] = list(statuses)
    return named(
        spec={"containers": containers} | (spec or {}), status={"phase": "Pending"} | status
    )


def state(kind: str, **more: Any) -> Object:
    return {"name": "main", "state": {kind: more}}


INIT = {"initContainers": [{"name": "a"}, {"name": "b"}]}
SIDECAR = {"initContainers": [{"name": "s", "restartPolicy": "Always"}]}
RUNNING = state("running") | {"ready": True}


@pytest.mark.parametrize(
    ("value", "ready", "status", "restarts"),
    [
        pytest.param(pod(), "0/1", "Pending", "0", id="not begun"),
        pytest.param(pod(RUNNING, phase="Running"), "1/1", "Running", "0", id="running"),
        pytest.param(
            pod(state("waiting", reason="ErrImagePull")), "0/1", "ErrImagePull", "0", id="waits"
        ),
        pytest.param(
            pod(state("terminated", reason="Completed"), phase="Succeeded"),
            "0/1",
            "Completed",
            "0",
            id="done",
        ),
        pytest.param(
            pod(state("terminated", exitCode=3), phase="Failed"),
            "0/1",
            "ExitCode:3",
            "0",
            id="an exit code without a reason",
        ),
        pytest.param(
            pod(state("terminated", signal=9, exitCode=137), phase="Failed"),
            "0/1",
            "Signal:9",
            "0",
            id="a signal without a reason",
        ),
        pytest.param(
            pod(phase="Failed", reason="Evicted"), "0/1", "Evicted", "0", id="its own reason"
        ),
        pytest.param(
            pod(
                RUNNING
                | {
                    "restartCount": 2,
                    "lastState": {"terminated": {"finishedAt": MADE}},
                },
                phase="Running",
            ),
            "1/1",
            "Running",
            "2 (5m ago)",
            id="started again",
        ),
        pytest.param(
            pod(
                state("waiting", reason="ErrImagePull"),
                state("waiting", reason="CrashLoopBackOff"),
            ),
            "0/2",
            "ErrImagePull",
            "0",
            id="the first has the last word",
        ),
        pytest.param(
            pod(
                state("terminated", reason="Completed"),
                RUNNING,
                phase="Running",
                conditions=[{"type": "Ready", "status": "False"}],
            ),
            "1/2",
            "NotReady",
            "0",
            id="one done, one runs",
        ),
        pytest.param(
            pod(
                spec=INIT,
                initContainerStatuses=[
                    state("terminated", exitCode=0) | {"name": "a"},
                    state("waiting", reason="PodInitializing") | {"name": "b"},
                ],
            ),
            "0/1",
            "Init:1/2",
            "0",
            id="at the second init container",
        ),
        pytest.param(
            pod(
                spec=INIT,
                initContainerStatuses=[
                    state("terminated", exitCode=1, reason="Error") | {"name": "a"}
                ],
            ),
            "0/1",
            "Init:Error",
            "0",
            id="an init container failed",
        ),
        pytest.param(
            pod(
                RUNNING,
                spec=SIDECAR,
                phase="Running",
                initContainerStatuses=[
                    RUNNING | {"name": "s", "started": True, "restartCount": 1}
                ],
            ),
            "2/2",
            "Running",
            "1",
            id="a sidecar counts",
        ),
        pytest.param(
            pod(
                conditions=[
                    {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
                ]
            ),
            "0/1",
            "SchedulingGated",
            "0",
            id="held by a gate",
        ),
    ],
)
def test_a_pod_is_summed_up_in_one_word(
    value: Object, ready: str, status: str, restarts: str
) -> None:
    cells = columns.of(PODS).cells(value, NOW)

    assert cells[:5] == ["x", ready, status, restarts, "5m"]


def test_a_pod_that_is_deleted_is_terminating_until_it_is_over() -> None:
    for phase, says in (("Running", "Terminating"), ("Succeeded", "Succeeded")):
        value = pod(phase=phase)
        value["metadata"]["deletionTimestamp"] = MADE
        assert columns.of(PODS).cells(value, NOW)[2] == says


@pytest.mark.parametrize(
    ("kind", "value", "cells"),
    [
        (
            registry.NODES,
            named(
                spec={"unschedulable": True},
                status={
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                    "nodeInfo": {"kubeletVersion": "v1"},
                },
            ),
            [
                *("x", "Ready,SchedulingDisabled", "<none>", "5m", "v1"),
                *("10.0.0.1", "<none>", "<unknown>", "<unknown>", "<unknown>"),
            ],
        ),
        (registry.NAMESPACES, named(status={"phase": "Active"}), ["x", "Active", "5m"]),
        (registry.CONFIGMAPS, named(data={"a": "b"}, binaryData={"c": "d"}), ["x", 2, "5m"]),
        (registry.SECRETS, named(type="Opaque", data={"a": "b"}), ["x", "Opaque", 1, "5m"]),
        (registry.SERVICE_ACCOUNTS, named(), ["x", 0, "5m"]),
        (
            registry.SERVICES,
            named(
                spec={
                    "type": "ClusterIP",
                    "clusterIP": "None",
                    "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
                    "selector": {"a": "b", "c": "d"},
                }
            ),
            ["x", "ClusterIP", "None", "<none>", "80/TCP,53/UDP", "5m", "a=b,c=d"],
        ),
        (
            registry.EVENTS,
            named(
                involvedObject={"kind": "Pod", "name": "p"},
                lastTimestamp=MADE,
                firstTimestamp=MADE,
                type="Warning",
                reason="Failed",
                message="no\n",
                count=3,
                source={"component": "kubelet", "host": "n"},
            ),
            ["5m", "Warning", "Failed", "pod/p", "", "kubelet, n", "no", "5m", 3, "x"],
        ),
        (
            registry.EVENTS,
            named(involvedObject=5),
            [*["<unknown>"] * 9, "x"],
        ),
        (
            registry.CLAIMS,
            named(
                spec={"volumeName": "v", "storageClassName": "s"},
                status={
                    "phase": "Bound",
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                },
            ),
            ["x", "Bound", "v", "1Gi", "RWO", "s", "<unset>", "5m", "Filesystem"],
        ),
        (
            registry.PRIORITY_CLASSES,
            named(value=7),
            ["x", 7, False, "5m", "PreemptLowerPriority"],
        ),
        (registry.LEASES, named(spec={"holderIdentity": "me"}), ["x", "me", "5m"]),
        (
            registry.DISRUPTION_BUDGETS,
            named(spec={"minAvailable": "50%"}, status={"disruptionsAllowed": 1}),
            ["x", "50%", "N/A", 1, "5m"],
        ),
        (registry.DEFINITIONS, named(), ["x", MADE]),
        (registry.MUTATING_WEBHOOKS, named(webhooks=[{}, {}]), ["x", 2, "5m"]),
    ],
    ids=lambda value: value.plural if isinstance(value, Kind) else "",
)
def test_built_in_kinds_have_the_columns_that_people_know(
    kind: Kind, value: Object, cells: list[Any]
) -> None:
    found = columns.of(kind)

    assert found.cells(value, NOW) == cells
    assert len(found.heads) == len(cells)


def defined(plural: str) -> Kind:
    [manifest] = [one.manifest() for one in DEFINITIONS if one.plural == plural]
    definitions.defaults(manifest)
    return definitions.defined(manifest).kept


def test_defined_kinds_have_the_columns_that_they_declare() -> None:
    job = columns.of(defined("jobs"))
    assert [(head.name, head.priority) for head in job.heads] == [
        ("Name", 0),
        ("STATUS", 0),
        ("minAvailable", 0),
        ("RUNNINGS", 0),
        ("AGE", 0),
        ("QUEUE", 1),
    ]
    value = named(spec={"queue": "q"}, status={"state": {"phase": "Running"}, "running": 2})
    assert job.cells(value, NOW) == ["x", "Running", None, 2, "5m", "q"]
    tier = columns.of(defined("hypernodes")).cells(named(spec={"tier": 1}), NOW)
    assert tier == ["x", "1", None, None, "5m"], "a number in a column of texts is a text"
    template = columns.of(defined("jobtemplates"))
    assert [head.name for head in template.heads] == ["Name", "Age"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        (".a.c", []),
        (".list[1].k", ["two"]),
        (".list[-1].k", ["two"]),
        (".list[7].k", []),
        (".list[*].k", ["one", "two"]),
        ('.list[?(@.t=="x")].k', ["one"]),
        (".list[?(@.t=='y')].k", ["two"]),
        (".list[?(@.t!='y')].k", ["one"]),
        (r".metadata.annotations.example\.com/note", ["hi"]),
        (".metadata.annotations['example.com/note']", ["hi"]),
        (".a.b.c", []),
    ],
)
def test_a_path_leads_to_what_stands_there(path: str, found: list[Any]) -> None:
    value = {
        "a": {"b": 1},
        "list": [{"k": "one", "t": "x"}, {"k": "two", "t": "y"}],
        "metadata": {"annotations": {"example.com/note": "hi"}},
    }

    assert list(jsonpath.compiled(path)(value)) == found


@pytest.mark.parametrize("path", ["", "a.b", "..a", ".a[", ".a[?(@.x>1)]", ".a..b", "{.a}"])
def test_what_is_no_simple_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"simple json path|empty"):
        jsonpath.compiled(path)


def entry(name: str) -> Entry:
    value = pod(RUNNING, phase="Running")
    value["metadata"] |= {"name": name, "uid": name, "resourceVersion": "7"}
    return entry_of(PODS, value, orjson.dumps(value))


def form(accept: str, **query: str) -> Any:
    request = Request("GET", "/", query, "", b"", accept=accept)
    return accepting.form_of(PODS, request, lambda: NOW)


def test_a_list_becomes_a_table_with_what_is_to_come_with_each_row() -> None:
    page = Page([entry(f"p{number}") for number in range(450)], 9, "more", 3)

    for included, kind in (("", "PartialObjectMetadata"), ("None", None), ("Object", None)):
        parts = list(form(TABLE, includeObject=included).many(page))
        assert len(parts) == 5, "others get their turn while a long table is made"
        table = orjson.loads(b"".join(parts))
        assert table["kind"] == "Table"
        assert table["metadata"] == {
            "resourceVersion": "9",
            "continue": "more",
            "remainingItemCount": 3,
        }
        assert [row["cells"][0] for row in table["rows"]] == [f"p{n}" for n in range(450)]
        first = table["rows"][0]["object"]
        if included == "None":
            assert first is None
        elif included == "Object":
            assert first["spec"]
        else:
            assert first["kind"] == kind
            assert first.keys() == {"kind", "apiVersion", "metadata"}
        assert len(table["columnDefinitions"]) == len(table["rows"][0]["cells"])
    assert orjson.loads(b"".join(form(TABLE).many(Page([], 9))))["rows"] == []


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        (f"{TABLE},application/json", "application/json;as=Table;g=meta.k8s.io;v=v1"),
        ("application/vnd.kubernetes.protobuf,application/json", "application/json"),
        (
            "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,"
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
            "application/json;as=Table;g=meta.k8s.io;v=v1beta1",
        ),
        (
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        ),
        ("application/json;as=Table;v=v2;g=meta.k8s.io,*/*", "application/json"),
    ],
)
def test_the_first_form_that_is_served_is_taken(accept: str, content_type: str) -> None:
    assert form(accept).content_type == content_type


def test_forms_that_are_not_served_are_refused() -> None:
    with pytest.raises(ApiError, match="application/json") as refused:
        form("application/vnd.kubernetes.protobuf")
    assert refused.value.code == 406
    with pytest.raises(ApiError, match="includeObject"):
        form(TABLE, includeObject="All")


def test_a_row_of_a_watch_and_a_bookmark_are_tables_too() -> None:
    table = form(TABLE)
    assert isinstance(table, Tables)

    one = orjson.loads(table.one(entry("p")))
    mark = orjson.loads(table.mark({"resourceVersion": "8"}))

    assert (one["metadata"]["resourceVersion"], one["rows"][0]["cells"][0]) == ("7", "p")
    assert mark["rows"][0]["object"]["metadata"]["resourceVersion"] == "8"

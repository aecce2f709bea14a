"""AdmissionReviews: what is read, what is answered, and what a patch changes."""

from __future__ import annotations

import json
from typing import Any, Final, cast

import pytest
from hypothesis import given, settings, strategies as st

from hekla.api.decode import encode, read
from hekla.api.fields import Model
from hekla.api.hyper_node import HyperNode
from hekla.api.job import Job
from hekla.api.job_flow import JobFlow
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.domain.errors import InvalidError, Violation
from services.webhook.https import envelope
from services.webhook.https.envelope import MalformedError, Verdict
from services.webhook.https.inventory import ENDPOINTS, REGISTERED
from services.webhook.https.judge import judge
from services.webhook.https.patch import changes
from services.webhook.rules.admission import Operation, admit
from services.webhook.rules.world import Limits
from tests.support.objects import job_manifest, make_job, make_queue, make_task, models
from tests.support.reviews import Object, patched, response, review
from tests.support.worlds import FixedWorld

WORLD: Final = FixedWorld(make_queue("used"), make_queue("child", parent="used"))
POD: Final = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
JOB: Final = encode(make_job("j", make_task("t", 2)))
OTHER: Final = encode(make_job("j", make_task("other", 2)))
QUEUE: Final = encode(make_queue("used"))
ASKED: Final = envelope.read(json.dumps(review("/jobs/validate", "CREATE", JOB)).encode())


def answered(path: str, body: Object | bytes) -> Object:
    """What is answered to a review sent to a path."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    found = envelope.read(data)
    verdict = judge(ENDPOINTS[path], found, WORLD, Limits())
    return response(envelope.answer(found, verdict), found.uid)


def with_(value: Any, *keys: str, **fields: Any) -> Any:
    """A copy with fields set in the part at ``keys``."""
    copy = json.loads(json.dumps(value))
    part = copy
    for key in keys:
        part = part.setdefault(key, {})
    part.update(fields)
    return copy


def test_the_paths_are_volcanos_with_their_names_and_operations() -> None:
    table = {
        path: (one.name, "/".join(one.operations), one.resource.group, one.failure_policy)
        for path, one in ENDPOINTS.items()
    }

    batch, scheduling = "batch.volcano.sh", "scheduling.volcano.sh"
    flow, topology = "flow.volcano.sh", "topology.volcano.sh"
    writes, every = "CREATE/UPDATE", "CREATE/UPDATE/DELETE"
    assert table == {
        "/jobs/mutate": ("mutatejob.volcano.sh", "CREATE", batch, "Fail"),
        "/jobs/validate": ("validatejob.volcano.sh", writes, batch, "Fail"),
        "/cronjobs/validate": ("validatecronjob.volcano.sh", writes, batch, "Fail"),
        "/podgroups/mutate": ("mutatepodgroup.volcano.sh", "CREATE", scheduling, "Fail"),
        "/podgroups/validate": ("validatepodgroup.volcano.sh", writes, scheduling, "Fail"),
        "/queues/mutate": ("mutatequeue.volcano.sh", "CREATE", scheduling, "Fail"),
        "/queues/validate": ("validatequeue.volcano.sh", every, scheduling, "Fail"),
        "/pods/mutate": ("mutatepod.volcano.sh", "CREATE", "", "Ignore"),
        "/pods/validate": ("validatepod.volcano.sh", "CREATE", "", "Ignore"),
        "/jobflows/validate": ("validatejobflow.volcano.sh", writes, flow, "Fail"),
        "/hypernodes/validate": ("validatehypernodes.volcano.sh", writes, topology, "Fail"),
    }
    assert set(ENDPOINTS) - set(REGISTERED) == {"/pods/mutate", "/pods/validate"}


def test_mutation_says_what_it_changed_and_validation_agrees() -> None:
    raw = job_manifest(tasks=[{"replicas": 2, "template": JOB["spec"]["tasks"][0]["template"]}])
    raw["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    del raw["spec"]["minAvailable"]
    told = answered("/jobs/mutate", review("/jobs/mutate", "CREATE", raw))
    whole = patched(told, raw)

    assert whole["spec"]["queue"] == "default"
    assert whole["spec"]["minAvailable"] == 2
    assert whole["spec"]["tasks"][0]["name"] == "default0"
    assert whole["metadata"] == raw["metadata"]
    assert answered("/jobs/validate", review("/jobs/validate", "CREATE", whole))["allowed"]
    assert "patch" not in answered("/jobs/mutate", review("/jobs/mutate", "CREATE", whole))


def test_mutation_leaves_alone_what_it_cannot_read() -> None:
    bad = with_(JOB, "spec", minAvailable="two")

    assert answered("/jobs/mutate", review("/jobs/mutate", "CREATE", bad)) == {
        "uid": "u-1",
        "allowed": True,
    }


DENIED: Final = [
    ("/jobs/validate", "CREATE", with_(JOB, "spec", minAvailable="two"), None, "spec.minAvail"),
    ("/jobs/validate", "CREATE", with_(JOB, "spec", minAvailble=2), None, "did you mean"),
    ("/jobs/validate", "CREATE", with_(JOB, "spec", queue="nope"), None, "spec.queue"),
    ("/jobs/validate", "CREATE", with_(JOB, apiVersion="batch/v1"), None, "of Volcano"),
    ("/jobs/validate", "CREATE", with_(JOB, kind="Queue", apiVersion="v1"), None, "apiVersion"),
    ("/jobs/validate", "CREATE", QUEUE, None, "kind: must be Job, is Queue"),
    ("/jobs/validate", "UPDATE", OTHER, JOB, "spec.tasks[0].name"),
    ("/queues/validate", "CREATE", with_(QUEUE, "spec", weight=-1), None, "spec.weight"),
    ("/hypernodes/validate", "CREATE", {"kind": "HyperNode"}, None, "apiVersion: is required"),
    ("/jobs/validate", "CREATE", with_(JOB, "metadata", name="nul\0"), None, "metadata.name"),
]


@pytest.mark.parametrize(
    ("path", "operation", "value", "old", "says"), DENIED, ids=[row[4] for row in DENIED]
)
def test_what_cannot_be_accepted_is_denied_with_field_and_reason(
    path: str, operation: str, value: Object, old: Object | None, says: str
) -> None:
    told = answered(path, review(path, operation, value, old))

    assert not told["allowed"]
    assert says in told["status"]["message"]
    assert (told["status"]["code"], told["status"]["reason"]) == (422, "Invalid")
    causes = told["status"].get("details", {}).get("causes", [])
    assert all(cause["field"] in told["status"]["message"] for cause in causes)


def test_all_that_is_wrong_is_told_at_once() -> None:
    bad = with_(JOB, "spec", queue="nope", maxRetry=-1, minSuccess=0)

    told = answered("/jobs/validate", review("/jobs/validate", "CREATE", bad))

    fields = {cause["field"] for cause in told["status"]["details"]["causes"]}
    assert fields == {"spec.queue", "spec.maxRetry", "spec.minSuccess"}


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/jobs/validate", review("/queues/validate", "CREATE", QUEUE), "expected jobs of"),
        ("/jobs/mutate", review("/jobs/mutate", "UPDATE", JOB, JOB), "expected CREATE"),
        ("/jobs/validate", review("/jobs/validate", "DELETE", None, JOB), "CREATE or UPDATE"),
        ("/jobs/validate", review("/jobs/validate", "CREATE", None), "request.object"),
        ("/jobs/validate", review("/jobs/validate", "CREATE", [1]), "must be an object"),
        (
            "/jobs/validate",
            review("/jobs/validate", "UPDATE", JOB, JOB, subResource="status"),
            "jobs/status",
        ),
    ],
)
def test_what_was_sent_to_the_wrong_place_is_denied(path: str, body: Object, says: str) -> None:
    told = answered(path, body)

    assert says in told["status"]["message"]
    assert told["status"]["code"] == 400


def test_a_pod_gets_the_gate_it_asks_for_and_is_judged_by_its_annotations() -> None:
    gate = "scheduling.volcano.sh/queue-allocation-gate"
    asks = with_(POD, "metadata", annotations={gate: "true"})
    told = answered("/pods/mutate", review("/pods/mutate", "CREATE", asks))
    assert patched(told, asks)["spec"] == {"schedulingGates": [{"name": gate}]}

    budget = with_(POD, "metadata", annotations={"volcano.sh/jdb-min-available": "0"})
    path = "/pods/validate"
    assert answered(path, review(path, "CREATE", budget))["allowed"], "of another scheduler"
    ours = with_(budget, "spec", schedulerName="volcano")
    denied = answered(path, review(path, "CREATE", ours))
    assert "volcano.sh/jdb-min-available" in denied["status"]["message"]


def test_hyper_nodes_may_go_and_pods_pass() -> None:
    gone = review("/hypernodes/validate", "DELETE", None, {"kind": "HyperNode"})

    assert answered("/hypernodes/validate", gone)["allowed"]
    for path in ("/pods/mutate", "/pods/validate"):
        assert answered(path, review(path, "CREATE", POD)) == {"uid": "u-1", "allowed": True}


def test_a_deletion_is_judged_by_what_is_deleted_or_by_its_name() -> None:
    path = "/queues/validate"
    child = encode(make_queue("child", parent="used"))

    used = answered(path, review(path, "DELETE", None, QUEUE))
    assert used["status"]["code"] == 403
    assert "child" in used["status"]["message"]
    assert answered(path, review(path, "DELETE", None, child))["allowed"]
    unreadable = with_(QUEUE, spec="?")
    assert not answered(path, review(path, "DELETE", None, unreadable))["allowed"]
    assert not answered(path, review(path, "DELETE", None, None, name="used"))["allowed"]
    assert answered(path, review(path, "DELETE", None, None))["allowed"]


def test_what_is_being_deleted_may_lose_its_finalizer_whatever_it_is_like() -> None:
    bad = with_(JOB, "spec", queue="nope", minAvailable="two")
    going = with_(bad, "metadata", deletionTimestamp="2026-01-02T03:04:05Z")

    assert answered("/jobs/validate", review("/jobs/validate", "UPDATE", going, bad))["allowed"]
    changed = with_(going, "spec", queue="no-more")
    assert not answered("/jobs/validate", review("/jobs/validate", "UPDATE", changed, bad))[
        "allowed"
    ]


def test_what_was_stored_before_it_could_be_read_can_be_mended() -> None:
    old = with_(JOB, "spec", bogus=1)

    told = answered("/jobs/validate", review("/jobs/validate", "UPDATE", JOB, old))

    assert told["allowed"]
    assert "spec.bogus" in told["warnings"][0]


def test_an_object_without_a_namespace_is_in_the_requests() -> None:
    bare = with_(JOB, "metadata")
    del bare["metadata"]["namespace"]

    told = answered("/jobs/mutate", review("/jobs/mutate", "CREATE", bare, namespace="team"))

    assert "namespace" not in patched(told, bare)["metadata"]


def test_long_answers_are_cut_to_what_api_servers_take() -> None:
    many = [Violation(f"spec.a[{index}]", "is wrong") for index in range(150)]
    told = response(envelope.answer(ASKED, Verdict(many, ["w\n" * 300, *["x" * 200] * 40])))

    assert told["status"]["message"].endswith("and 50 more")
    assert len(told["status"]["details"]["causes"]) == 100
    named = {"name": "j", "group": "batch.volcano.sh", "kind": "Job"}
    assert named.items() <= told["status"]["details"].items(), "kubectl shows it so"
    assert sum(map(len, told["warnings"])) <= 4096
    assert told["warnings"][-1].endswith("more warnings")
    assert all(warning.isprintable() for warning in told["warnings"])


BASE: Final = review("/jobs/validate", "CREATE", JOB)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "must be JSON"),
        (b"\xff", "must be JSON"),
        (b"[" * 5000, "nested too deep"),
        (b'{"a": 1, "b": {"x": 1, "x": 2}}', 'the key "x" occurs twice'),
        (b'{"a": NaN}', "NaN is no number"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "must be JSON"),
        (b"[]", "must be an object"),
        (b"{}", "expected an AdmissionReview of admission.k8s.io/v1, got null"),
        (json.dumps({**BASE, "apiVersion": "admission.k8s.io/v1beta1"}).encode(), "v1beta1"),
        (json.dumps({**BASE, "request": None}).encode(), "request must be an object"),
        (json.dumps(with_(BASE, "request", uid="")).encode(), "request.uid"),
        (json.dumps(with_(BASE, "request", uid=7)).encode(), "uid must be a text, is 7"),
        (json.dumps(with_(BASE, "request", resource="jobs")).encode(), "request.resource"),
    ],
)
def test_what_is_no_review_is_said_to_be_none(body: bytes, says: str) -> None:
    with pytest.raises(MalformedError) as raised:
        envelope.read(body)

    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@settings(max_examples=60)
@given(st.one_of(models(Job), models(Queue)))
def test_a_patch_makes_of_an_object_what_the_rules_made_of_it(value: Job | Queue) -> None:
    raw = encode(value)
    try:
        found = read(raw)
    except InvalidError:
        return
    assert isinstance(found, Job | Queue)
    judged: Any = admit(Operation.CREATE, cast("Any", found), None, WORLD)
    path = f"/{found.kind.lower()}s/mutate"
    told = answered(path, review(path, "CREATE", raw, namespace=found.metadata.namespace))

    try:
        again = read(patched(told, raw))
    except InvalidError:  # a default that is out of bounds, and so refused
        assert not judged.allowed
    else:
        assert again == judged.object


@settings(max_examples=60)
@given(
    st.one_of(models(Job), models(Queue), models(PodGroup), models(JobFlow), models(HyperNode)),
    st.sampled_from(["CREATE", "UPDATE", "DELETE"]),
    st.sampled_from(sorted(ENDPOINTS)),
)
def test_any_object_gets_an_answer_anywhere(value: Model, operation: str, path: str) -> None:
    raw = encode(value)
    body = review(path, operation, None if operation == "DELETE" else raw, raw)

    answered(path, body)


VALUES: Final = st.recursive(
    st.none() | st.integers(0, 2) | st.sampled_from("ab"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c/d", "e~f"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c/d", "e~f"]), VALUES, max_size=4),
    st.dictionaries(st.sampled_from(["a", "b", "c/d", "e~f"]), VALUES, max_size=4),
)
def test_changes_lead_from_one_object_to_another_and_touch_nothing_else(
    before: Object, after: Object
) -> None:
    raw = {**before, "more": {"kept": True}}

    told = response(envelope.answer(ASKED, Verdict(patch=list(changes(before, after, raw)))))

    assert patched(told, raw) == {**after, "more": {"kept": True}}

"""What may be done to custom resources that are made from rows."""

from __future__ import annotations

import copy
from typing import Any, Final
from uuid import UUID

import pytest

from hekla.api import decode
from hekla.domain.names import Key
from hekla.kube.mirror.custom import ROW_UID
from hekla.store.mirrored import Mirrored
from hekla.store.objects import KUBE
from services.webhook.https import projected
from services.webhook.https.envelope import Review, Verdict
from services.webhook.https.inventory import ENDPOINTS
from tests.support.objects import job_manifest

JOB: Final = job_manifest()
KEY: Final = Key("default", "job-1")
ROW: Final = UUID(int=1)
CUSTOM: Final = UUID(int=2)
SPEC: Final = decode.encode(decode.read(JOB))["spec"]
GROUP_SPEC: Final = {"minMember": 1, "queue": "default"}


def row(
    origin: str = "rpc", *, custom: UUID | None = CUSTOM, job: UUID | None = None
) -> Mirrored:
    spec = GROUP_SPEC if job else SPEC
    return Mirrored(KEY, ROW, origin, custom, 1, False, {}, {}, spec, {}, job)  # noqa: FBT003


def job(*, mark: str = str(ROW), uid: UUID = CUSTOM, **spec: Any) -> dict[str, Any]:
    made = copy.deepcopy(dict(JOB))
    made["metadata"] = {"namespace": KEY.namespace, "name": KEY.name, "uid": str(uid)}
    if mark:
        made["metadata"]["annotations"] = {ROW_UID: mark}
    made["spec"] = {**made["spec"], **spec}
    return made


def group(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "namespace": KEY.namespace,
            "name": KEY.name,
            "uid": str(CUSTOM),
            "annotations": {ROW_UID: str(ROW)},
        },
        "spec": {**GROUP_SPEC, **spec},
    }


def judged(
    path: str, new: Any, old: Any = None, stored: Mirrored | None = None
) -> Verdict | None:
    kind = ENDPOINTS[path].resource
    review = Review(
        uid="r",
        operation="CREATE" if old is None else "UPDATE",
        group=kind.group,
        version=kind.version,
        resource=kind.plural,
        subresource="",
        namespace=KEY.namespace,
        name="" if old is None else KEY.name,
        object=new,
        old=old,
    )
    return projected.judge(
        ENDPOINTS[path], review, lambda _, key: stored if key == KEY else None
    )


def refused(verdict: Verdict | None) -> str:
    assert verdict is not None
    [violation] = verdict.violations
    return str(violation)


def test_what_the_mirror_makes_passes_and_is_not_completed() -> None:
    assert judged("/jobs/validate", job(), stored=row()) == Verdict()
    assert judged("/jobs/mutate", job(), stored=row()) == Verdict()


def test_what_others_make_is_for_the_rules_to_judge() -> None:
    assert judged("/jobs/validate", job(mark=""), stored=row()) is None
    assert judged("/jobs/validate", job(mark="", maxRetry=9), job(mark=""), row(KUBE)) is None


@pytest.mark.parametrize(
    "stored", [None, row(KUBE), row()._replace(uid=UUID(int=7))], ids=["none", "kube", "other"]
)
def test_nobody_else_may_use_the_mark(stored: Mirrored | None) -> None:
    said = refused(judged("/jobs/validate", job(), stored=stored))

    assert said == (
        "metadata.annotations[hekla.io/row-uid]: is set by Hekla on what it makes of its own;"
        " leave it out"
    )


def test_edits_are_refused_with_the_door_they_have_to_take() -> None:
    said = refused(judged("/jobs/validate", job(maxRetry=9), job(), row()))

    assert "spec: cannot be changed here: job default/job-1 was made by gRPC" in said
    assert "UpdateJob" in said


def test_the_group_of_a_job_changes_with_the_job() -> None:
    new, old = group(minMember=2), group()
    stored = row(job=UUID(int=5))._replace(key=KEY)

    assert "change the Job" in refused(judged("/podgroups/validate", new, old, stored))
    assert judged("/podgroups/validate", {**old, "status": {"phase": "Running"}}, old) == (
        Verdict()
    )


def test_what_the_row_says_by_now_passes() -> None:
    behind = job(maxRetry=9)

    assert judged("/jobs/validate", job(), behind, row()) == Verdict()


def test_a_mark_that_somebody_took_away_protects_nothing_less() -> None:
    said = refused(judged("/jobs/validate", job(mark="", maxRetry=9), job(mark=""), row()))

    assert "cannot be changed here" in said


def test_labels_and_finalizers_are_anybodys() -> None:
    new = job()
    new["metadata"]["labels"] = {"team": "x"}

    assert judged("/jobs/validate", new, job(), row()) == Verdict()
    of_kubectl = job(mark="")
    of_kubectl["metadata"]["finalizers"] = ["a.b/c"]
    assert judged("/jobs/validate", job(mark=""), of_kubectl, row(KUBE)) == Verdict()


def test_one_that_waits_for_its_name_may_be_changed() -> None:
    waiting = job(mark="", uid=UUID(int=9))
    changed = job(mark="", uid=UUID(int=9), maxRetry=9)

    assert judged("/jobs/validate", changed, waiting, row()) is None


def test_what_definitions_fill_into_templates_is_no_edit() -> None:
    made = job()
    container = made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["ports"] = [{"containerPort": 80, "protocol": "TCP"}]
    spec = copy.deepcopy(SPEC)
    spec["tasks"][0]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]

    assert judged("/jobs/validate", made, stored=row()._replace(spec=spec)) == Verdict()

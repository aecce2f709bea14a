"""What events do to the world, and what survives them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from hekla.domain.phases import PodGroupPhase, PodPhase
from services.scheduler.core.cluster import Cluster
from services.scheduler.core.nodes import CPU_COLUMN, PODS_COLUMN
from services.scheduler.core.objects import (
    EPOCH,
    Group,
    Pod,
    PodSpec,
    PriorityClass,
    Queue,
    limits,
)
from services.scheduler.core.session import HOLD_FOR
from services.scheduler.core.status import Status
from tests.support.cluster import (
    add_gang,
    cluster_with,
    confirm,
    decide,
    node,
    placed,
    report_of,
)


def used(cluster: Cluster, name: str, column: int = CPU_COLUMN) -> int:
    return int(cluster.nodes.used[cluster.nodes.rows[name], column])


def kept(cluster: Cluster, name: str) -> int:
    return int(cluster.nodes.pipelined[cluster.nodes.rows[name], CPU_COLUMN])


def test_a_placed_pod_is_assumed_until_an_event_names_its_node() -> None:
    cluster = cluster_with(node("a", 4))
    [pod] = add_gang(cluster, "g", {"t": (1, {"cpu": 3})})
    decisions = decide(cluster)

    cluster.upsert_pod(replace(pod, labels={"older": "event"}))
    assert cluster.pods[pod.uid].status is Status.BINDING
    assert used(cluster, "a") == 3
    assert not decide(cluster).binds

    confirm(cluster, decisions)
    assert cluster.pods[pod.uid].status is Status.BOUND
    assert used(cluster, "a") == 3
    assert not cluster.assumed


def test_an_event_may_name_another_node_than_was_assumed() -> None:
    cluster = cluster_with(node("a", 4), node("b", 4))
    [pod] = add_gang(cluster, "g", {"t": (1, {"cpu": 3})})
    decide(cluster)

    cluster.upsert_pod(replace(pod, node="b"))

    assert (used(cluster, "a"), used(cluster, "b")) == (0, 3)


def test_a_bind_recorded_by_an_earlier_leader_counts_before_the_pod_is_known() -> None:
    cluster = cluster_with(node("a", 4))
    cluster.assume("g-t-0", "a")
    add_gang(cluster, "g", {"t": (2, {"cpu": 2})})

    assert used(cluster, "a") == 2
    assert placed(decide(cluster)) == {"g-t-1": "a"}


def test_a_failed_bind_frees_the_room_of_a_single_pod() -> None:
    cluster = cluster_with(node("a", 4))
    [pod] = add_gang(cluster, "g", {"t": (1, {"cpu": 3})})
    decide(cluster)

    cluster.forget(pod.uid)

    assert used(cluster, "a") == 0
    assert kept(cluster, "a") == 0
    assert placed(decide(cluster)) == {pod.uid: "a"}


def cut_gang(cluster: Cluster) -> str:
    """A gang ``g`` of two, one of which is bound; the node that is kept for the other."""
    add_gang(cluster, "g", {"t": (2, {"cpu": 2})}, queue="small")
    first = placed(decide(cluster))
    cluster.upsert_pod(replace(cluster.pods["g-t-0"].pod, node=first["g-t-0"]))
    cluster.forget("g-t-1")
    return first["g-t-1"]


def test_a_gang_cut_by_a_failed_bind_keeps_its_room_and_comes_first() -> None:
    queues = (Queue("small"), Queue("default"))
    cluster = cluster_with(node("a", 2), node("b", 2), queues=queues)
    name = cut_gang(cluster)
    cluster.upsert_priority_class(PriorityClass("high", 9))
    rival = {"t": (1, {"cpu": 2})}
    add_gang(cluster, "rival", rival, priority_class="high", created=EPOCH - timedelta(1))
    assert (used(cluster, name), kept(cluster, name)) == (0, 2)

    cluster.upsert_queue(Queue("small", capability=limits({"cpu": 2})))
    assert not decide(cluster).binds, "the room is not for others"
    cluster.upsert_queue(Queue("small"))

    assert placed(decide(cluster)) == {"g-t-1": name}
    assert (used(cluster, name), kept(cluster, name)) == (2, 0)


def test_the_room_of_a_cut_gang_is_let_go_after_a_time() -> None:
    queues = (Queue("small"), Queue("default"))
    cluster = cluster_with(node("a", 2), node("b", 2), queues=queues)
    name = cut_gang(cluster)
    cluster.upsert_queue(Queue("small", capability=limits({"cpu": 2})))
    add_gang(cluster, "rival", {"t": (1, {"cpu": 2})})
    waiting = decide(cluster)
    assert not waiting.binds
    assert waiting.again_in == HOLD_FOR

    assert not decide(cluster, now=EPOCH + HOLD_FOR - timedelta(seconds=1)).binds
    assert placed(decide(cluster, now=EPOCH + HOLD_FOR)) == {"rival-t-0": name}


def test_a_gang_of_which_no_bind_went_through_keeps_nothing() -> None:
    cluster = cluster_with(node("a", 4))
    add_gang(cluster, "g", {"t": (2, {"cpu": 2})})
    decide(cluster)

    cluster.forget("g-t-0")
    assert kept(cluster, "a") == 2
    cluster.forget("g-t-1")

    assert kept(cluster, "a") == 0
    assert not cluster.holding


def test_a_bind_that_was_said_to_have_failed_may_have_happened() -> None:
    cluster = cluster_with(node("a", 4))
    add_gang(cluster, "g", {"t": (2, {"cpu": 2})})
    decide(cluster)
    cluster.forget("g-t-0")

    cluster.upsert_pod(replace(cluster.pods["g-t-0"].pod, node="a"))

    assert (used(cluster, "a"), kept(cluster, "a")) == (4, 0)


@pytest.mark.parametrize("late", ["group", "generation"])
def test_pods_are_held_until_their_group_is_known_and_new_enough(late: str) -> None:
    cluster = cluster_with(node("a", 4))
    group = Group("g-uid", "ns", "g", generation=1, min_member=1, phase=PodGroupPhase.INQUEUE)
    pod = Pod(
        "p",
        "ns",
        "p",
        PodSpec.of({"cpu": 1}),
        group="g",
        group_uid="g-uid",
        group_generation=2,
    )
    if late == "generation":
        cluster.upsert_group(group)
    cluster.upsert_pod(pod)
    assert not decide(cluster).binds

    cluster.upsert_group(replace(group, generation=2))

    assert placed(decide(cluster)) == {"p": "a"}


def test_a_pod_is_not_taken_for_one_of_an_older_group_of_the_same_name() -> None:
    cluster = cluster_with(node("a", 4))
    old = Group("old", "ns", "g", min_member=1, phase=PodGroupPhase.INQUEUE)
    cluster.upsert_group(old)
    cluster.upsert_pod(Pod("p", "ns", "p", group="g", group_uid="new"))
    assert not decide(cluster).binds

    cluster.remove_group("old")
    cluster.upsert_group(replace(old, uid="new"))

    assert placed(decide(cluster)) == {"p": "a"}


def test_pods_of_a_deleted_group_are_not_placed() -> None:
    cluster = cluster_with(node("a", 4))
    add_gang(cluster, "g", {"t": (1, {"cpu": 1})})
    cluster.remove_group("g-uid")
    assert not decide(cluster).binds

    cluster.upsert_group(Group("g-uid", "ns", "g", phase=PodGroupPhase.INQUEUE))

    assert placed(decide(cluster)) == {"g-t-0": "a"}


def test_other_schedulers_pods_count_as_use_of_their_node() -> None:
    cluster = cluster_with(node("a", 4, pods=2))
    other = Pod("o", "x", "o", PodSpec.of({"cpu": 3}), ours=False)
    cluster.upsert_pod(other)
    assert "o" not in cluster.pods

    cluster.upsert_pod(replace(other, node="a"))
    add_gang(cluster, "g", {"t": (1, {"cpu": 2})})

    assert (used(cluster, "a"), used(cluster, "a", PODS_COLUMN)) == (3, 1)
    assert not decide(cluster).binds
    cluster.remove_pod("o")
    assert placed(decide(cluster)) == {"g-t-0": "a"}


def test_the_number_of_pods_is_a_resource() -> None:
    cluster = cluster_with(node("a", 9, pods=2))
    add_gang(cluster, "g", {"t": (3, {})}, minimum=0)

    decisions = decide(cluster)

    assert len(decisions.binds) == 2
    assert decisions.waiting == {
        "g-uid": "0/1 nodes are unavailable: 1 node(s) pod number exceeded."
    }


def test_pods_that_say_they_are_on_an_unknown_node_count_once_it_is_known() -> None:
    cluster = cluster_with()
    cluster.upsert_pod(Pod("p", "x", "p", PodSpec.of({"cpu": 3}), node="a", ours=False))
    cluster.upsert_node(node("a", 4))
    assert used(cluster, "a") == 3

    cluster.remove_node("a")
    cluster.upsert_node(node("b", 4))
    assert used(cluster, "b") == 0, "rows are used again, amounts are not"
    cluster.upsert_node(node("a", 4))

    assert used(cluster, "a") == 3


def test_a_resource_that_appears_later_counts_for_those_who_asked_for_it() -> None:
    cluster = cluster_with(node("a", 4))
    spec = PodSpec.of({"new/thing": 2})
    cluster.upsert_pod(Pod("p", "x", "p", spec, node="a", ours=False))
    add_gang(cluster, "g", {"t": (1, {"new/thing": 2})})
    assert not decide(cluster).binds

    cluster.upsert_node(node("a", 4, more={"new/thing": 3}))
    assert used(cluster, "a", cluster.nodes.columns["new/thing"]) == 2
    assert not decide(cluster).binds
    cluster.upsert_node(node("a", 4, more={"new/thing": 4}))

    assert placed(decide(cluster)) == {"g-t-0": "a"}


def test_ending_pods_keep_their_room_until_they_are_gone() -> None:
    cluster = cluster_with(node("a", 4))
    pod = Pod("p", "x", "p", PodSpec.of({"cpu": 3}), node="a", phase=PodPhase.RUNNING)
    cluster.upsert_pod(replace(pod, terminating=True))
    add_gang(cluster, "g", {"t": (1, {"cpu": 2})})
    row = cluster.nodes.rows["a"]

    assert cluster.nodes.releasing[row, CPU_COLUMN] == 3
    assert not decide(cluster).binds
    cluster.upsert_pod(replace(pod, terminating=True, phase=PodPhase.FAILED))
    assert cluster.nodes.releasing[row, CPU_COLUMN] == 0
    assert placed(decide(cluster)) == {"g-t-0": "a"}


def test_priority_classes_may_come_after_who_names_them() -> None:
    cluster = cluster_with(node("a", 1))
    add_gang(cluster, "low", {"t": (1, {"cpu": 1})}, created=EPOCH)
    later = EPOCH + timedelta(days=1)
    add_gang(cluster, "high", {"t": (1, {"cpu": 1})}, priority_class="high", created=later)
    cluster.upsert_priority_class(PriorityClass("high", 5))

    assert list(placed(decide(cluster))) == ["high-t-0"]


def test_a_global_default_counts_where_no_class_is_named() -> None:
    cluster = cluster_with(node("a", 1))
    cluster.upsert_priority_class(PriorityClass("high", 5))
    cluster.upsert_priority_class(PriorityClass("usual", 7, global_default=True))
    add_gang(cluster, "named", {"t": (1, {"cpu": 1})}, priority_class="high")
    add_gang(cluster, "plain", {"t": (1, {"cpu": 1})}, created=EPOCH + timedelta(days=1))

    assert list(placed(decide(cluster))) == ["plain-t-0"]


def test_our_own_status_is_not_undone_by_an_event_that_is_behind() -> None:
    cluster = cluster_with(node("a", 1))
    add_gang(cluster, "g", {"t": (1, {"cpu": 9})}, phase=PodGroupPhase.PENDING)
    assert report_of(decide(cluster), "g").phase is PodGroupPhase.INQUEUE

    group = cluster.groups["g-uid"].group
    cluster.upsert_group(replace(group, generation=7, phase=PodGroupPhase.PENDING))

    assert cluster.groups["g-uid"].phase is PodGroupPhase.INQUEUE


def test_our_own_word_that_comes_back_is_no_news() -> None:
    cluster = cluster_with(node("a", 1))
    add_gang(cluster, "g", {"t": (1, {"cpu": 9})}, phase=PodGroupPhase.PENDING)
    decide(cluster)
    group = cluster.groups["g-uid"].group

    cluster.upsert_group(replace(group, phase=PodGroupPhase.INQUEUE, running=1))
    assert not cluster.changed

    cluster.follow()
    assert cluster.groups["g-uid"].status.running == 1, "the next leader begins from it"
    cluster.upsert_group(replace(group, phase=PodGroupPhase.INQUEUE, min_member=2))
    assert cluster.changed


def test_a_follower_takes_status_from_events() -> None:
    cluster = cluster_with()
    group = Group("g-uid", "ns", "g")
    cluster.upsert_group(group)

    cluster.upsert_group(replace(group, phase=PodGroupPhase.RUNNING))

    assert cluster.groups["g-uid"].phase is PodGroupPhase.RUNNING


def test_classes_nobody_belongs_to_are_dropped() -> None:
    cluster = cluster_with(node("a", 9))
    add_gang(cluster, "g", {"t": (3, {"cpu": 1}), "u": (2, {"cpu": 2})})
    decide(cluster)
    assert len(cluster.classes) == 2

    for uid in list(cluster.pods):
        cluster.remove_pod(uid)

    assert len(cluster.classes) == 0
    assert used(cluster, "a") == 0

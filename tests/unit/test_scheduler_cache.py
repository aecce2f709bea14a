"""The cache: what events make of the world, in whatever shape they come."""

from __future__ import annotations

from dataclasses import replace

from hekla.store.binds import BindRecord
from services.scheduler.cache import Cache
from services.scheduler.core.objects import Group, Node, Pod, PodSpec, PriorityClass, Queue
from services.scheduler.events import GONE, Batch, Change, Full, Kind, SeenPod

NODES = [Node(name, {"cpu": 4000, "pods": 10}) for name in ("n0", "n1")]
GROUP = Group("g", "ns", "group", min_member=1)
POD = Pod("p", "ns", "pod", PodSpec.of({"cpu": 1000}), group="group", group_uid="g")
RECORD = BindRecord("p", "ns", "pod", "g", "n0", {"cpu": 1000})


def seen(pod: Pod = POD, scheduler: str = "volcano") -> SeenPod:
    return SeenPod(pod, scheduler, version="1")


def filled(*pods: SeenPod) -> Cache:
    cache = Cache("volcano", lambda: None)
    cache.apply(Full(Kind.NODE, NODES))
    cache.apply(Full(Kind.PRIORITY_CLASS, [PriorityClass("high", 10)]))
    cache.apply(Full(Kind.QUEUE, [Queue("default")]))
    cache.apply(Full(Kind.GROUP, [GROUP]))
    cache.apply(Full(Kind.POD, pods))
    return cache


def used(cache: Cache, node: str) -> int:
    nodes = cache.cluster.nodes
    return int(nodes.used[nodes.rows[node], nodes.columns["cpu"]])


def test_it_is_filled_once_every_kind_was_listed() -> None:
    cache = Cache("volcano", lambda: None)
    assert cache.missing() == list(Kind)

    assert filled().missing() == []


def test_what_a_full_list_does_not_hold_is_gone() -> None:
    cache = filled(seen(replace(POD, node="n0")))
    assert used(cache, "n0") == 1000

    for kind in Kind:
        cache.apply(Full(kind, []))

    assert [cache.size(kind) for kind in Kind] == [0] * len(Kind)
    assert not cache.cluster.pods
    assert not cache.cluster.groups
    assert not cache.cluster.nodes.rows


def test_an_object_that_makes_no_sense_does_not_stop_the_others() -> None:
    cache = filled()
    broken = replace(POD, uid="broken", spec=None)  # type: ignore[arg-type]

    cache.apply(Batch(Kind.POD, [Change("ADDED", seen(broken)), Change("ADDED", seen())]))

    assert "p" in cache.cluster.pods


def test_pods_of_others_count_where_they_are_and_are_not_ours_to_tell() -> None:
    cache = filled(seen(replace(POD, node="n1"), scheduler="other"))

    assert used(cache, "n1") == 1000
    assert not cache.unplaced


def test_a_recorded_placement_counts_before_any_event_and_after_an_old_one() -> None:
    cache = filled()

    assert cache.expect(RECORD)
    assert used(cache, "n0") == 1000

    cache.apply(Batch(Kind.POD, [Change("ADDED", seen())]))
    assert used(cache, "n0") == 1000, "an event from before the bind does not undo it"

    cache.apply(Batch(Kind.POD, [Change("MODIFIED", seen(replace(POD, node="n0")))]))
    assert used(cache, "n0") == 1000
    assert not cache.cluster.assumed


def test_a_recorded_placement_of_a_pod_that_is_gone_is_given_up() -> None:
    cache = filled()
    cache.expect(RECORD)

    cache.give_up("p")

    assert used(cache, "n0") == 0
    assert not cache.cluster.pods


def test_what_events_have_told_needs_no_record() -> None:
    placed = filled(seen(replace(POD, node="n1")))
    gone = filled(seen())
    gone.apply(Batch(Kind.POD, [Change(GONE, seen())]))

    assert not placed.expect(RECORD)
    assert not gone.expect(RECORD)
    assert used(placed, "n0") == used(gone, "n0") == 0


def test_who_follows_believes_nothing_but_events() -> None:
    cache = filled()
    cache.expect(RECORD)

    cache.follow()

    assert used(cache, "n0") == 0
    assert not cache.cluster.pods
    assert not cache.cluster.assumed


def test_a_rebuilt_cache_is_what_events_told() -> None:
    other = replace(POD, uid="q", name="other", node="n1")
    cache = filled(seen(), seen(other))
    cache.cluster.nodes.used[:] = 12345
    cache.cluster.assume("p", "n0")

    cache.rebuild()

    assert (used(cache, "n0"), used(cache, "n1")) == (0, 1000)
    assert set(cache.cluster.groups["g"].members) == {"p", "q"}
    assert cache.cluster.queues.get("default").queue == Queue("default")


def test_pods_without_a_group_are_counted_until_they_have_a_node() -> None:
    lonely = replace(POD, group="", group_uid="")
    cache = filled(seen(lonely))
    assert cache.ungrouped == 1

    cache.apply(Batch(Kind.POD, [Change("MODIFIED", seen(replace(lonely, node="n0")))]))

    assert cache.ungrouped == 0

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.local_cluster import LocalCluster, Object, make_pod
from tests.support.waiting import wait_until

SPACE = "/api/v1/namespaces/default"
CONFIGMAPS = f"{SPACE}/configmaps"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    running = LocalCluster(
        tmp_path_factory.mktemp("cluster"), "--runtime=simulate", "--watch-history=50"
    ).start()
    yield running
    assert running.end() == 0


def labelled(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


def version(cluster: LocalCluster) -> str:
    return str(cluster.get(CONFIGMAPS)["metadata"]["resourceVersion"])


def test_a_watch_tells_what_happens_after_its_version(cluster: LocalCluster) -> None:
    cluster.make(CONFIGMAPS, labelled("before"))
    since = version(cluster)
    cluster.make(CONFIGMAPS, labelled("missed"))

    with cluster.watching(f"{CONFIGMAPS}?watch=True&resourceVersion={since}") as watch:
        cluster.make(CONFIGMAPS, labelled("live"))
        cluster.merge(f"{CONFIGMAPS}/live", {"data": {"a": "b"}})
        cluster.call("DELETE", f"{CONFIGMAPS}/live")

        assert watch.wait_for(4) == [
            ("ADDED", "missed"),
            ("ADDED", "live"),
            ("MODIFIED", "live"),
            ("DELETED", "live"),
        ]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in watch.events]
    assert versions == sorted(set(versions))


def test_a_watch_without_a_version_begins_with_what_is_there(cluster: LocalCluster) -> None:
    cluster.make(CONFIGMAPS, labelled("there", set="begin"))

    selector = "labelSelector=set%3Dbegin"
    with cluster.watching(f"{CONFIGMAPS}?watch=1&{selector}&resourceVersion=0") as watch:
        assert watch.wait_for(1) == [("ADDED", "there")]
        cluster.make(CONFIGMAPS, labelled("other", set="none"))
        cluster.call("DELETE", f"{CONFIGMAPS}/there")
        assert watch.wait_for(2) == [("ADDED", "there"), ("DELETED", "there")]


def test_entering_a_selection_is_an_add_and_leaving_it_a_delete(cluster: LocalCluster) -> None:
    cluster.make(CONFIGMAPS, labelled("mover", team="a"))
    since = version(cluster)

    path = f"{CONFIGMAPS}?watch=1&labelSelector=team%3Db&resourceVersion={since}"
    with cluster.watching(path) as watch:
        for team in ("b", "b2", "b"):
            cluster.merge(f"{CONFIGMAPS}/mover", {"metadata": {"labels": {"team": team}}})
        cluster.merge(f"{CONFIGMAPS}/mover", {"data": {"x": "y"}})

        assert [type_ for type_, _ in watch.wait_for(4)] == [
            "ADDED",
            "DELETED",
            "ADDED",
            "MODIFIED",
        ]
    left = watch.events[1]["object"]
    assert left["metadata"]["labels"] == {"team": "b"}, "the state before it left"
    added = watch.events[0]["object"]
    assert int(left["metadata"]["resourceVersion"]) > int(added["metadata"]["resourceVersion"])


def test_a_field_selector_follows_a_pod_to_its_node(cluster: LocalCluster) -> None:
    path = "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dnode-2&resourceVersion="
    with cluster.watching(path + version(cluster)) as watch:
        cluster.make(f"{SPACE}/pods", make_pod("wanderer"))
        binding = {"target": {"kind": "Node", "name": "node-2"}}
        cluster.call("POST", f"{SPACE}/pods/wanderer/binding", binding)

        assert watch.wait_for(1)[0] == ("ADDED", "wanderer")


def test_initial_events_end_with_a_bookmark(cluster: LocalCluster) -> None:
    cluster.make(CONFIGMAPS, labelled("first", set="initial"))
    path = f"{CONFIGMAPS}?watch=1&labelSelector=set%3Dinitial&sendInitialEvents=true"

    assert cluster.call("GET", path).code == 422
    options = "resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    with cluster.watching(f"{path}&{options}") as watch:
        watch.wait_for(2)
        assert [event["type"] for event in watch.events] == ["ADDED", "BOOKMARK"]
        mark = watch.events[1]["object"]
        assert mark["kind"] == "ConfigMap"
        assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        cluster.make(CONFIGMAPS, labelled("second", set="initial"))
        assert watch.wait_for(3)[2] == ("ADDED", "second")


def test_a_watch_ends_cleanly_when_its_time_is_over(cluster: LocalCluster) -> None:
    since = version(cluster)

    with cluster.watching(
        f"{CONFIGMAPS}?watch=1&resourceVersion={since}&timeoutSeconds=1"
    ) as watch:
        assert watch.ended.wait(timeout=20)
    assert watch.events == []


def test_a_version_that_is_forgotten_is_gone(cluster: LocalCluster) -> None:
    since = version(cluster)
    cluster.make(CONFIGMAPS, labelled("busy"))
    for count in range(60):
        cluster.merge(f"{CONFIGMAPS}/busy", {"data": {"count": str(count)}})

    with cluster.watching(f"{CONFIGMAPS}?watch=1&resourceVersion={since}") as watch:
        assert watch.ended.wait(timeout=20)
    [event] = watch.events
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


def test_a_version_of_the_future_is_refused(cluster: LocalCluster) -> None:
    answer = cluster.call("GET", f"{CONFIGMAPS}?watch=1&resourceVersion=999999999")

    assert answer.code == 504
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_watches_can_be_held_back_while_lists_are_not(cluster: LocalCluster) -> None:
    since = version(cluster)
    assert cluster.call("POST", "/hekla/faults", {"watchDelaySeconds": 0.5}).code == 200

    with cluster.watching(f"{CONFIGMAPS}?watch=1&resourceVersion={since}") as watch:
        begun = time.monotonic()
        cluster.make(CONFIGMAPS, labelled("late-1"))
        cluster.call("POST", "/hekla/faults", {"watchDelaySeconds": 0})
        cluster.make(CONFIGMAPS, labelled("late-2"))
        assert cluster.get(f"{CONFIGMAPS}/late-2")
        early = list(watch.events)
        assert not early or time.monotonic() - begun >= 0.45
        assert watch.wait_for(2) == [("ADDED", "late-1"), ("ADDED", "late-2")]
        assert time.monotonic() - begun >= 0.45
    assert cluster.get("/hekla/faults") == {"watchDelaySeconds": 0.0}


@pytest.mark.parametrize("faults", [{"bogus": 1}, {"watchDelaySeconds": -1}, [1], "no"])
def test_a_fault_that_is_none_is_refused(cluster: LocalCluster, faults: object) -> None:
    assert cluster.call("POST", "/hekla/faults", faults).code == 400


def test_many_watchers_hear_of_a_change(cluster: LocalCluster) -> None:
    since = version(cluster)
    path = f"{CONFIGMAPS}?watch=1&resourceVersion={since}"
    watches = [cluster.watching(path) for _ in range(10)]
    opened = [watch.__enter__() for watch in watches]
    try:
        cluster.make(CONFIGMAPS, labelled("news"))
        wait_until(lambda: all(watch.events for watch in opened), what="all to hear")
    finally:
        for watch in watches:
            watch.__exit__(None, None, None)


def test_after_a_kill_a_watch_resumes_or_lists_again_and_versions_go_on(
    cluster: LocalCluster,
) -> None:
    old = version(cluster)
    cluster.make(CONFIGMAPS, labelled("lasting"))
    since = version(cluster)

    cluster.kill()
    cluster.start()

    assert int(version(cluster)) >= int(since)
    with cluster.watching(f"{CONFIGMAPS}?watch=1&resourceVersion={version(cluster)}") as watch:
        cluster.make(CONFIGMAPS, labelled("after"))
        assert watch.wait_for(1) == [("ADDED", "after")]
    with cluster.watching(f"{CONFIGMAPS}?watch=1&resourceVersion={old}") as watch:
        watch.wait_for(1)
    assert watch.events[0]["object"]["code"] == 410

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hekla.domain import names
from tests.support.local_cluster import LocalCluster, Object, make_pod
from tests.support.waiting import wait_until

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    running = LocalCluster(
        tmp_path_factory.mktemp("cluster"),
        "--runtime=simulate",
        "--simulate-duration=50ms",
        "--node-cpu=4",
        "--node-pods=200",
        "--nodes=2",
    ).start()
    yield running
    assert running.end() == 0


def simulated(name: str, duration: str = "", exit_code: str = "", **spec: object) -> Object:
    pod = make_pod(name, node="node-0", **spec)
    pod["metadata"]["annotations"] = {
        key: value
        for key, value in (
            (names.SIMULATE_DURATION, duration),
            (names.SIMULATE_EXIT_CODE, exit_code),
        )
        if value
    }
    return pod


def terminated(pod: Object) -> Object:
    state: Object = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return state


def test_a_pod_runs_and_succeeds(cluster: LocalCluster) -> None:
    since = cluster.get(PODS)["metadata"]["resourceVersion"]
    with cluster.watching(f"{PODS}?watch=1&resourceVersion={since}") as watch:
        cluster.make(PODS, simulated("fine"))
        cluster.wait_for_phase("fine", "Succeeded")
        watch.wait_for(3)
    phases = [event["object"]["status"]["phase"] for event in watch.events]
    assert phases == ["Pending", "Running", "Succeeded"]
    running, over = watch.events[1]["object"], watch.events[2]["object"]
    conditions = {item["type"]: item["status"] for item in running["status"]["conditions"]}
    assert conditions == dict.fromkeys(
        ("PodScheduled", "Initialized", "ContainersReady", "Ready"), "True"
    )
    assert running["status"]["podIP"].startswith("127.")
    assert terminated(over)["exitCode"] == 0
    assert terminated(over)["reason"] == "Completed"


def test_a_pod_fails_with_the_code_it_asks_for(cluster: LocalCluster) -> None:
    cluster.make(PODS, simulated("bad", exit_code="3"))

    pod = cluster.wait_for_phase("bad", "Failed")

    assert terminated(pod)["exitCode"] == 3
    assert terminated(pod)["reason"] == "Error"


@pytest.mark.parametrize(
    ("name", "duration", "exit_code"), [("odd-1", "soon", ""), ("odd-2", "", "many")]
)
def test_annotations_that_cannot_be_read_fail_the_pod_and_say_so(
    cluster: LocalCluster, name: str, duration: str, exit_code: str
) -> None:
    cluster.make(PODS, simulated(name, duration, exit_code))

    pod = cluster.wait_for_phase(name, "Failed")

    assert terminated(pod)["reason"] == "StartError"
    assert "simulate" in terminated(pod)["message"]


def test_a_pod_that_may_restart_does_so_after_a_while(cluster: LocalCluster) -> None:
    cluster.make(PODS, simulated("again", exit_code="1", restartPolicy="OnFailure"))

    def restarted() -> Object | None:
        status: Object = cluster.pod("again")["status"]
        [container] = status.get("containerStatuses", [{}])
        return status if container.get("restartCount") else None

    status = wait_until(restarted, what="a restart")
    assert status["phase"] == "Running"
    assert status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1


def test_a_deleted_pod_shows_how_it_ended_before_it_is_gone(cluster: LocalCluster) -> None:
    cluster.make(PODS, simulated("ended", "1h"))
    cluster.wait_for_phase("ended", "Running")
    since = cluster.get(PODS)["metadata"]["resourceVersion"]

    with cluster.watching(f"{PODS}?watch=1&resourceVersion={since}") as watch:
        marked = cluster.call("DELETE", f"{PODS}/ended").body
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
        wait_until(lambda: ("DELETED", "ended") in watch.names(), what="the end")
    mine = [event for event in watch.events if event["object"]["metadata"]["name"] == "ended"]
    assert [event["type"] for event in mine] == ["MODIFIED", "MODIFIED", "DELETED"]
    assert mine[1]["object"]["status"]["phase"] == "Failed"
    assert terminated(mine[1]["object"])["exitCode"] == 143


def test_a_finalizer_keeps_the_outcome_of_a_deleted_pod(cluster: LocalCluster) -> None:
    pod = simulated("outcome", "1h")
    pod["metadata"]["finalizers"] = [names.OUTCOME_FINALIZER]
    cluster.make(PODS, pod)
    cluster.wait_for_phase("outcome", "Running")

    cluster.call("DELETE", f"{PODS}/outcome")

    kept = cluster.wait_for_phase("outcome", "Failed")
    assert terminated(kept)["exitCode"] == 143
    cluster.merge(f"{PODS}/outcome", {"metadata": {"finalizers": None}})
    assert cluster.phase("outcome") == "gone"


def test_a_node_takes_no_more_than_it_has(cluster: LocalCluster) -> None:
    def asking(name: str, duration: str, **wanted: str) -> Object:
        pod = simulated(name, duration)
        pod["spec"]["nodeName"] = "node-1"
        pod["spec"]["containers"][0]["resources"] = {"requests": wanted}
        return pod

    cluster.make(PODS, asking("large", "1h", cpu="3500m"))
    cluster.wait_for_phase("large", "Running")
    cluster.make(PODS, asking("second", "1h", cpu="501m"))
    refused = cluster.wait_for_phase("second", "Failed")
    assert refused["status"]["reason"] == "OutOfcpu"
    assert "requested: 501, used: 3500, capacity: 4000" in refused["status"]["message"]
    assert "containerStatuses" not in refused["status"]
    cluster.make(PODS, asking("gpus", "1h", **{"nvidia.com/gpu": "9"}))
    assert cluster.wait_for_phase("gpus", "Failed")["status"]["reason"] == "OutOfnvidia.com/gpu"
    cluster.call("DELETE", f"{PODS}/large")
    cluster.wait_for_phase("large", "gone")
    cluster.make(PODS, asking("third", "1h", cpu="4"))
    cluster.wait_for_phase("third", "Running")


def test_a_pod_that_selects_another_node_is_refused(cluster: LocalCluster) -> None:
    cluster.make(PODS, simulated("picky", nodeSelector={"disk": "fast"}))

    assert cluster.wait_for_phase("picky", "Failed")["status"]["reason"] == "NodeAffinity"


def test_a_simulated_pod_goes_on_after_a_kill(cluster: LocalCluster) -> None:
    cluster.make(PODS, simulated("through", "1500ms"))
    before = cluster.wait_for_phase("through", "Running")

    cluster.kill()
    cluster.start()

    pod = cluster.wait_for_phase("through", "Succeeded")
    assert pod["metadata"]["uid"] == before["metadata"]["uid"]
    assert pod["status"]["podIP"] == before["status"]["podIP"]
    started = before["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    assert terminated(pod)["startedAt"] == started


def test_logs_of_a_simulated_pod_do_not_exist(cluster: LocalCluster) -> None:
    cluster.make(PODS, simulated("silent"))
    cluster.wait_for_phase("silent", "Succeeded")

    answer = cluster.call("GET", f"{PODS}/silent/log")

    assert answer.code == 400
    assert "no log" in answer.body["message"]


def test_many_pods_run_at_once(cluster: LocalCluster) -> None:
    for index in range(150):
        cluster.make(PODS, simulated(f"many-{index}", "100ms"))

    def succeeded() -> bool:
        listed = cluster.get(f"{PODS}?fieldSelector=status.phase%3DSucceeded")["items"]
        found = [str(pod["metadata"]["name"]) for pod in listed]
        return sum(name.startswith("many-") for name in found) == 150

    wait_until(succeeded, what="all pods to succeed")


def test_a_simulated_pod_waits_for_what_it_needs_and_has_init_containers(
    cluster: LocalCluster,
) -> None:
    volume = {"name": "c", "configMap": {"name": "simulated"}}
    inits = [
        {"name": "i", "image": "x"},
        {"name": "side", "image": "x", "restartPolicy": "Always"},
    ]
    cluster.make(PODS, simulated("full", volumes=[volume], initContainers=inits))

    def waiting() -> Object:
        statuses = cluster.pod("full")["status"].get("containerStatuses", [{}])
        found: Object = statuses[0].get("state", {}).get("waiting", {})
        return found

    wait_until(lambda: "simulated" in waiting().get("message", ""), what="a reason to wait")
    cluster.make(
        "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "simulated"}, "data": {}}
    )

    status = cluster.wait_for_phase("full", "Succeeded")["status"]
    codes = [
        each["state"]["terminated"]["exitCode"]
        for each in [*status["initContainerStatuses"], *status["containerStatuses"]]
    ]
    assert codes == [0, 0, 0]


def test_a_simulated_pod_that_is_active_for_too_long_fails(cluster: LocalCluster) -> None:
    cluster.make(PODS, simulated("long", duration="1h", activeDeadlineSeconds=1))

    assert cluster.wait_for_phase("long", "Failed")["status"]["reason"] == "DeadlineExceeded"

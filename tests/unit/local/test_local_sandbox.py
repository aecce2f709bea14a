"""Where things are mounted, and by which names pods find each other: pure parts."""

from __future__ import annotations

import pytest

from hekla.domain.errors import Violation
from hekla.local.kinds.registry import Object
from hekla.local.rules import budgets, volumes as volume_rules
from hekla.local.runtimes.peers import Peer, Service, lines
from hekla.local.runtimes.sandbox import Mount, MountError, covers, on_machine

THERE = {
    "/",
    "/data",
    "/etc",
    "/etc/ssl",
    "/usr",
    "/usr/local",
    "/mnt",
    "/dev",
    "/proc",
    "/sys",
}


def covered(*targets: str) -> list[str]:
    return covers([Mount("/s", target) for target in targets], THERE.__contains__)


@pytest.mark.parametrize(
    ("targets", "folders"),
    [
        pytest.param(["/data"], [], id="it is there"),
        pytest.param(["/new", "/new/below"], [], id="the root is the container's own"),
        pytest.param(["/etc/new", "/etc/ssl/new"], [], id="so is /etc"),
        pytest.param(["/mnt/new/deep"], ["/mnt"], id="the folder that is there"),
        pytest.param(["/usr/local/x", "/usr/y"], ["/usr"], id="one in another"),
        pytest.param(["/data/new", "/data"], [], id="in a volume"),
    ],
)
def test_only_folders_that_must_hold_a_new_place_become_a_containers_own(
    targets: list[str], folders: list[str]
) -> None:
    assert covered(*targets) == folders


@pytest.mark.parametrize("target", ["/dev/new", "/proc/1/x", "/sys/x/y"])
def test_no_place_is_made_among_devices(target: str) -> None:
    with pytest.raises(MountError, match=target):
        covered(target)


@pytest.mark.parametrize(
    ("path", "here"),
    [
        ("/data", "/s/data"),
        ("/data/x/../y", "/s/data/y"),
        ("/data/inner/z", "/s/inner/z"),
        ("/database", "/database"),
        ("/", "/"),
    ],
)
def test_a_path_of_a_container_is_found_here(path: str, here: str) -> None:
    mounts = [Mount("/s/data", "/data"), Mount("/s/inner", "/data/inner/")]

    assert on_machine(path, mounts) == here


def pod(number: int, name: str, *, hostname: str = "", subdomain: str = "") -> Peer:
    return Peer(f"127.1.0.{number}", "ns", name, hostname, hostname or name, subdomain)


def hosts(peers: list[tuple[Peer, dict[str, str]]], *services: Service) -> dict[str, list[str]]:
    """The addresses by name."""
    found: dict[str, list[str]] = {}
    for line in lines("ns", peers, services):
        address, *names = line.split()
        for name in names:
            found.setdefault(name, []).append(address)
    return found


WEB = {"app": "web"}


def test_a_pod_is_found_by_its_names_and_a_service_by_its_pods() -> None:
    peers = [
        (pod(1, "a-0", hostname="a", subdomain="web"), WEB),
        (pod(2, "b-0", hostname="b", subdomain="web"), WEB),
        (pod(3, "other"), {}),
    ]

    found = hosts(peers, Service("web", headless=True, wants=WEB))

    for name in ("a.web", "a.web.ns", "a.web.ns.svc", "a.web.ns.svc.cluster.local", "a", "a-0"):
        assert found[name] == ["127.1.0.1"]
    for name in ("web", "web.ns", "web.ns.svc.cluster.local"):
        assert found[name] == ["127.1.0.1", "127.1.0.2"]
    assert found["other"] == ["127.1.0.3"]


@pytest.mark.parametrize(
    "service",
    [
        pytest.param(Service("other", headless=True, wants=WEB), id="another name"),
        pytest.param(Service("web", headless=False, wants=WEB), id="not headless"),
        pytest.param(Service("web", headless=True, wants={"app": "x"}), id="another selector"),
        pytest.param(Service("web", headless=True, wants={}), id="no selector"),
    ],
)
def test_a_name_in_a_subdomain_takes_a_headless_service_that_selects_the_pod(
    service: Service,
) -> None:
    found = hosts([(pod(1, "p", hostname="a", subdomain="web"), WEB)], service)

    assert "a.web" not in found
    assert found["p"] == ["127.1.0.1"]


def test_a_name_that_two_claim_is_the_older_ones() -> None:
    peers = [(pod(1, "x", hostname="a"), WEB), (pod(2, "a"), WEB), (pod(3, "web"), {})]

    found = hosts(peers, Service("web", headless=True, wants=WEB))

    assert found["a"] == ["127.1.0.1"]
    assert found["web"] == ["127.1.0.1", "127.1.0.2"], "a service's name is no pod's"


def running(*, ready: bool = True, phase: str = "Running", deleted: bool = False) -> Object:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    metadata = {"deletionTimestamp": "x"} if deleted else {}
    return {"metadata": metadata, "status": {"phase": phase, "conditions": [condition]}}


@pytest.mark.parametrize(
    ("spec", "pods", "allowed"),
    [
        ({"minAvailable": 2}, [running()] * 3, 1),
        ({"minAvailable": 2}, [running(), running(), running(ready=False)], 0),
        ({"minAvailable": 2}, [running(), running(), running(deleted=True)], 0),
        ({"minAvailable": 5}, [running()] * 3, 0),
        ({"minAvailable": "50%"}, [running()] * 3, 1),
        ({"maxUnavailable": 1}, [running()] * 3, 1),
        ({"maxUnavailable": "34%"}, [running()] * 3, 2),
        ({"maxUnavailable": 0}, [running()] * 3, 0),
        ({}, [running()] * 3, 2),
        ({"minAvailable": 0}, [], 0),
        ({"minAvailable": 1}, [running(), running(phase="Succeeded")], 0),
    ],
)
def test_a_budget_allows_what_leaves_enough(
    spec: Object, pods: list[Object], allowed: int
) -> None:
    assert budgets.budget("b", spec, pods).allowed == allowed


def wrong(volumes: object, mounts: object = None) -> list[str]:
    spec: Object = {"volumes": volumes, "containers": [{"name": "c", "volumeMounts": mounts}]}
    found: list[Violation] = list(volume_rules.check(spec))
    return [each.path for each in found]


VOLUME = "spec.volumes[0]"
MOUNT = "spec.containers[0].volumeMounts[0]"


@pytest.mark.parametrize(
    ("volumes", "mounts", "paths"),
    [
        ([{"name": "d", "emptyDir": {}}], [{"name": "d", "mountPath": "/d"}], []),
        (5, None, ["spec.volumes"]),
        (["d"], None, [VOLUME]),
        ([{"emptyDir": {}}], None, [f"{VOLUME}.name"]),
        ([{"name": "d"}, {"name": "d"}], None, ["spec.volumes[1].name"]),
        ([{"name": "A_b"}], None, [f"{VOLUME}.name"]),
        ([{"name": "d", "emptyDir": {}, "secret": {}}], None, [f"{VOLUME}.secret"]),
        ([{"name": "d", "configMap": 5}], None, [f"{VOLUME}.configMap"]),
        ([{"name": "d", "configMap": {}}], None, [f"{VOLUME}.configMap.name"]),
        ([{"name": "d", "secret": {"secretName": 5}}], None, [f"{VOLUME}.secret.secretName"]),
        (
            [{"name": "d", "configMap": {"name": "x", "defaultMode": 512}}],
            None,
            [f"{VOLUME}.configMap.defaultMode"],
        ),
        (
            [
                {
                    "name": "d",
                    "configMap": {"name": "x", "items": [{"key": "k", "path": "../p"}]},
                }
            ],
            None,
            [f"{VOLUME}.configMap.items[0].path"],
        ),
        (
            [{"name": "d", "downwardAPI": {"items": [{"path": "p"}]}}],
            None,
            [f"{VOLUME}.downwardAPI.items[0]"],
        ),
        (
            [{"name": "d", "projected": {"sources": [{"secret": {}}, {}]}}],
            None,
            [f"{VOLUME}.projected.sources[0].secret.name", f"{VOLUME}.projected.sources[1]"],
        ),
        (
            [{"name": "d", "hostPath": {"path": "/x", "type": "Odd"}}],
            None,
            [f"{VOLUME}.hostPath.type"],
        ),
        ([{"name": "d"}], [{"name": "e", "mountPath": "/d"}], [f"{MOUNT}.name"]),
        ([{"name": "d"}], [{"name": "d"}], [f"{MOUNT}.mountPath"]),
        ([{"name": "d"}], [{"name": "d", "mountPath": "d"}], [f"{MOUNT}.mountPath"]),
        (
            [{"name": "d"}],
            [{"name": "d", "mountPath": "/d", "subPath": "/x"}],
            [f"{MOUNT}.subPath"],
        ),
        (
            [{"name": "d"}],
            [{"name": "d", "mountPath": "/d"}, {"name": "d", "mountPath": "/d"}],
            ["spec.containers[0].volumeMounts[1].mountPath"],
        ),
    ],
)
def test_what_is_wrong_with_volumes_is_told_with_its_place(
    volumes: object, mounts: object, paths: list[str]
) -> None:
    assert wrong(volumes, mounts) == paths

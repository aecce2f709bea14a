"""What ``deploy/`` describes fits together, Kubernetes' types, and what the services read."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from typing import Any, Final

import pytest
import yaml

from hekla import config
from hekla.domain.errors import InvalidError
from hekla.rpc.service import ServiceConfig
from services.controller.config import ControllerConfig
from services.flow.config import FlowConfig
from services.scheduler import policy
from services.scheduler.config import SchedulerConfig
from services.webhook.config import WebhookConfig
from services.webhook.https.registration import NAME, SERVICE_PORT
from tests.support import deploy, kube_schema
from tests.support.deploy import EXAMPLE, KUBERNETES, SERVICES, Container, Object, of_kind
from tests.support.image import DOCKERFILE, ROOT, entrypoint, environment, stages

CONFIGS: Final[Mapping[str, type[ServiceConfig]]] = {
    "webhook": WebhookConfig,
    "controller": ControllerConfig,
    "scheduler": SchedulerConfig,
    "flow": FlowConfig,
}
MIGRATE: Final = ["python", "-m", "hekla.cli.main", "migrate"]
SECRET: Final = {"url": "postgresql://hekla:secret@db:5432/hekla"}
VARIABLES: Final = {"HEKLA_DATABASE_PASSWORD": "secret", "HEKLA_KUBECONFIG": "/k/config"}
OBJECTS: Final = deploy.documents()
PODS: Final = {
    one["metadata"]["name"]: one["spec"]["template"]
    for one in OBJECTS
    if one["kind"] in {"Deployment", "Job"}
}
IMAGES: Final = stages(DOCKERFILE.read_text())
VERSION: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def described() -> Iterator[Any]:
    for way, found in (
        ("kubernetes", deploy.from_kubernetes(SECRET)),
        ("compose", deploy.from_compose(VARIABLES)),
    ):
        for name in (*SERVICES, "migrate"):
            yield pytest.param(found[name], id=f"{way}-{name}")


CONTAINERS: Final = list(described())

# ---- the Dockerfile ---------------------------------------------------------------------


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_runs_its_service(service: str) -> None:
    assert entrypoint(IMAGES[service]) == ["python", "-m", f"services.{service}"]


def test_an_image_migrates() -> None:
    assert entrypoint(IMAGES["migrate"]) == MIGRATE


def test_all_that_is_copied_exists_and_is_let_in() -> None:
    kept = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text().splitlines()
    let_in = [line[1:] for line in kept if line.startswith("!")]
    sources = [
        source
        for stage in IMAGES.values()
        for text in stage.all("COPY")
        if not text.startswith("--from=")
        for source in text.split()[:-1]
    ]

    assert sources
    assert not [source for source in sources if not (ROOT / source).exists()]
    assert not [
        source
        for source in sources
        if not any(fnmatch(source.rstrip("/"), pattern) for pattern in let_in)
    ]
    assert "*" in kept


def test_images_are_of_one_base_and_run_without_root_and_shell() -> None:
    assert {IMAGES[name].base for name in (*SERVICES, "migrate")} == {"runtime"}
    assert IMAGES["runtime"].all("USER") == ["65532:65532"]
    assert not [stage for stage in IMAGES.values() if stage.all("CMD") or stage.all("ADD")]
    assert not IMAGES["runtime"].all("RUN")
    assert environment(IMAGES["runtime"])["PYTHONDONTWRITEBYTECODE"] == "1"


def test_no_registry_is_named_and_everything_is_installed_by_its_hash() -> None:
    text = DOCKERFILE.read_text()

    assert re.findall(r"^ARG PYTHON_IMAGE=(.*)$", text, re.MULTILINE) == ["python:3.11-slim"]
    assert "://" not in text
    installs = re.findall(r"pip install ([^\n\\]*)", text)
    assert installs
    assert all("--require-hashes" in one or "--no-index" in one for one in installs)


# ---- both ways of running them ----------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_container_runs_what_its_image_does(container: Container) -> None:
    assert container.command == entrypoint(IMAGES[container.name])


@pytest.mark.parametrize(
    "container", [one for one in CONTAINERS if "migrate" not in str(one.id)]
)
def test_a_service_can_read_its_settings_and_listens_where_it_says(
    container: Container,
) -> None:
    cls, prefix = CONFIGS[container.name], f"HEKLA_{container.name.upper()}"
    known = {option.variable for option in config.options(cls, prefix)}

    assert set(container.environ) <= known, "a setting that nobody reads"
    settings = config.load(cls, prefix, container.environ)
    https = getattr(settings, "https_listen", None)
    listens = [settings.listen, settings.http_listen, *([https] if https else [])]
    assert listens == [f"0.0.0.0:{port}" for port in container.ports]
    assert settings.insecure_listen
    exposed = " ".join(IMAGES[container.name].all("EXPOSE")).split()
    assert exposed[: len(listens)] == [str(port) for port in container.ports]


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_service_finds_those_it_calls(container: Container) -> None:
    """A setting named for another service says that one's name and port."""
    by_port = {"50051": "webhook", "50052": "controller", "50053": "scheduler", "50054": "flow"}
    for variable, value in container.environ.items():
        other = variable.rpartition("_")[2].lower()
        if other in SERVICES:
            host, _, port = value.rpartition(":")
            assert by_port[port] == other
            assert host in {other, f"hekla-{other}"}


# ---- compose ----------------------------------------------------------------------------

COMPOSE: Final = deploy.compose(VARIABLES)["services"]


def test_compose_has_postgres_the_migration_and_four_services() -> None:
    assert set(COMPOSE) == {"postgres", "migrate", *SERVICES}


def test_compose_asks_for_what_it_must_not_guess() -> None:
    with pytest.raises(AssertionError, match="HEKLA_DATABASE_PASSWORD"):
        deploy.compose({})


@pytest.mark.parametrize("name", [*SERVICES, "migrate"])
def test_a_container_of_compose_may_do_little(name: str) -> None:
    service = COMPOSE[name]

    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["build"]["target"] == name
    assert service["image"] == f"hekla/{name}:{VERSION}"
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_of_compose_waits_for_the_schema_and_tells_its_health(name: str) -> None:
    service = COMPOSE[name]
    port = deploy.from_compose(VARIABLES)[name].ports[-1]

    after = {other: how["condition"] for other, how in service["depends_on"].items()}
    assert after.pop("migrate") == "service_completed_successfully"
    assert set(after.values()) <= {"service_healthy"}
    assert set(after) <= set(COMPOSE)
    assert service["healthcheck"]["test"][-1] == f"http://127.0.0.1:{port}/readyz"
    assert COMPOSE["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"


# ---- Kubernetes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [*OBJECTS, deploy.example_secret()], ids=lambda one: str(one["metadata"]["name"])
)
def test_a_manifest_is_of_its_kind(value: Object) -> None:
    kind = kube_schema.type_name(value["apiVersion"], value["kind"])

    assert kube_schema.violations(value, kind, kind) == []


def test_what_is_no_field_or_no_value_is_found() -> None:
    template = {"spec": {"containers": [{"name": "c", "imagePullPolcy": "x", "stdin": 1}]}}

    assert kube_schema.violations(template, "V1PodTemplateSpec", "t") == [
        "t.spec.containers[0].imagePullPolcy: unknown field",
        "t.spec.containers[0].stdin: must be bool, is 1",
    ]
    assert kube_schema.violations({"verbs": "get"}, "V1PolicyRule", "t")
    assert kube_schema.violations({}, "V1PolicyRule", "t"), "verbs are required"


def test_the_kustomization_lists_every_file_and_image() -> None:
    listed = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    files = {path.name for path in KUBERNETES.glob("*.yaml")}

    assert set(listed["resources"]) == files - {"kustomization.yaml", EXAMPLE}
    images = [f"{image['name']}:{image['newTag']}" for image in listed["images"]]
    used = [pod["spec"]["containers"][0]["image"] for pod in PODS.values()]
    assert sorted(images) == sorted(used)
    assert set(images) == {f"hekla/{name}:{VERSION}" for name in (*SERVICES, "migrate")}


@pytest.mark.parametrize("name", sorted(PODS))
def test_a_pod_is_within_the_restricted_standard(name: str) -> None:
    spec = PODS[name]["spec"]
    [container] = spec["containers"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    allowed = {"name", "emptyDir", "configMap", "secret", "projected"}
    assert all(set(volume) <= allowed for volume in spec["volumes"])
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    assert not [port for port in container.get("ports", ()) if "hostPort" in port]


@pytest.mark.parametrize("name", sorted(PODS))
def test_a_pod_has_resources_an_account_and_no_surprising_variables(name: str) -> None:
    spec = PODS[name]["spec"]
    accounts = of_kind("ServiceAccount", OBJECTS)

    assert spec["serviceAccountName"] == name
    assert accounts[name]["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    [container] = spec["containers"]
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in spec["volumes"]
    }


@pytest.mark.parametrize("service", SERVICES)
def test_what_belongs_to_a_service_selects_its_pods(service: str) -> None:
    name = f"hekla-{service}"
    labels = PODS[name]["metadata"]["labels"]
    deployment = of_kind("Deployment", OBJECTS)[name]
    budget = of_kind("PodDisruptionBudget", OBJECTS)[name]
    policy_ = of_kind("NetworkPolicy", OBJECTS)[name]
    front = of_kind("Service", OBJECTS)[name]

    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert budget["spec"]["selector"]["matchLabels"] == labels
    assert policy_["spec"]["podSelector"]["matchLabels"] == labels
    assert front["spec"]["selector"] == labels
    [container] = PODS[name]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    offered = {port["targetPort"]: port["port"] for port in front["spec"]["ports"]}
    assert offered == {**ports, **({"https": SERVICE_PORT} if "https" in ports else {})}
    probes = [container[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")]
    assert [probe["httpGet"]["path"] for probe in probes] == ["/healthz", "/healthz", "/readyz"]
    assert all(probe["httpGet"]["port"] in ports for probe in probes)
    assert deployment["spec"]["replicas"] > budget["spec"]["maxUnavailable"]


def test_every_policy_names_pods_and_ports_that_are_there() -> None:
    known = [pod["metadata"]["labels"] for pod in PODS.values()]
    for policy_ in of_kind("NetworkPolicy", OBJECTS).values():
        for rule in policy_["spec"]["ingress"]:
            named = {port["port"] for port in rule["ports"]}
            assert named <= {"grpc", "http", "https"}
            assert ("from" in rule) is (named != {"https"}), "API servers call from anywhere"
            for peer in rule.get("from", ()):
                if "podSelector" in peer:
                    assert peer["podSelector"]["matchLabels"] in known


def test_accounts_have_a_token_only_where_a_role_is() -> None:
    bound = of_kind("ClusterRoleBinding", OBJECTS)
    roles = of_kind("ClusterRole", OBJECTS)
    bound_here = of_kind("RoleBinding", OBJECTS)

    assert set(bound) == set(roles)
    assert set(roles) == {f"hekla-{one}" for one in SERVICES}
    assert set(bound_here) == set(of_kind("Role", OBJECTS)) == {"hekla-webhook"}
    for name, binding in (*bound.items(), *bound_here.items()):
        assert binding["roleRef"]["name"] == name
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": name, "namespace": "hekla"}
        ]
    tokens = {name for name, pod in PODS.items() if pod["spec"]["automountServiceAccountToken"]}
    assert tokens == set(roles)


def test_the_webhook_is_where_the_api_server_is_told_that_it_is() -> None:
    [namespace] = of_kind("Namespace", OBJECTS)
    settings = WebhookConfig(database_url=SECRET["url"])
    rules = [
        rule
        for kind in ("ClusterRole", "Role")
        for rule in of_kind(kind, OBJECTS)["hekla-webhook"]["rules"]
    ]

    assert settings.namespace == namespace
    assert settings.service in of_kind("Service", OBJECTS)
    named = {name for rule in rules for name in rule.get("resourceNames", ())}
    assert named == {NAME, settings.certificate_secret}


def test_everything_is_in_the_namespace_and_the_example_is_the_secret_asked_for() -> None:
    cluster_wide = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
    [namespace] = of_kind("Namespace", OBJECTS)
    asked = [
        variable["valueFrom"]["secretKeyRef"]
        for pod in PODS.values()
        for variable in pod["spec"]["containers"][0]["env"]
        if "valueFrom" in variable
    ]

    for one in OBJECTS:
        wanted = None if one["kind"] in cluster_wide else namespace
        assert one["metadata"].get("namespace") == wanted
    example = deploy.example_secret()
    assert {one["name"] for one in asked} == {example["metadata"]["name"]}
    must = {one["key"] for one in asked if not one.get("optional")}
    assert must == set(example["stringData"])


def test_the_policy_of_the_config_map_is_the_one_that_is_built_in() -> None:
    text = of_kind("ConfigMap", OBJECTS)["hekla-scheduler"]["data"]["volcano-scheduler.conf"]

    assert yaml.safe_load(text) == yaml.safe_load(policy.DEFAULT)
    try:
        policy.load(text)
    except InvalidError as error:
        pytest.fail(str(error))


def words(values: Sequence[str]) -> list[str]:
    container = Container("c", [], {str(n): value for n, value in enumerate(values)}, [])
    return list(container.moved({"db": "127.0.0.1", "50051": "7"}).environ.values())


def test_only_whole_words_are_moved() -> None:
    assert words(["db:50051", "x-db:150051", "http://db/db?a=db"]) == [
        "127.0.0.1:7",
        "x-db:150051",
        "http://127.0.0.1/127.0.0.1?a=127.0.0.1",
    ]

"""What ``deploy/`` describes, as containers: commands, environments, ports and probes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.image import DOCKERFILE, ROOT, entrypoint, stages

DEPLOY: Final = ROOT / "deploy"
KUBERNETES: Final = DEPLOY / "kubernetes"
EXAMPLE: Final = "database-secret.example.yaml"
SERVICES: Final = ("webhook", "controller", "scheduler", "flow")

Object = dict[str, Any]


@dataclass(frozen=True)
class Probe:
    """How a kubelet asks a container."""

    path: str
    port: int
    period: float
    timeout: float
    failures: int


@dataclass(frozen=True)
class Container:
    """One container, as it is described."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    ports: Sequence[int]
    mounts: Mapping[str, Mapping[str, str] | Path] = field(default_factory=dict)
    """Files by path: those of a ConfigMap by name, or one file."""
    probes: Mapping[str, Probe] = field(default_factory=dict)
    health: Sequence[str] = ()
    """A command whose exit code tells whether it is healthy."""

    def moved(self, words: Mapping[str, str]) -> Container:
        """The same with other words in its values: ports, host names, paths."""
        pattern = re.compile(
            "|".join(rf"(?<![\w.-]){re.escape(word)}(?![\w-])" for word in words)
        )

        def change(text: str) -> str:
            return pattern.sub(lambda found: words[found[0]], text) if words else text

        return replace(
            self,
            environ={name: change(value) for name, value in self.environ.items()},
            health=[change(word) for word in self.health],
            ports=[int(change(str(port))) for port in self.ports],
            probes={
                name: replace(probe, port=int(change(str(probe.port))))
                for name, probe in self.probes.items()
            },
        )


def documents(folder: Path = KUBERNETES) -> Sequence[Object]:
    """Every object that the kustomization lists, in its order."""
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    return [one for name in listed for one in yaml.safe_load_all((folder / name).read_text())]


def example_secret() -> Object:
    """The Secret that users make."""
    found: Object = yaml.safe_load((KUBERNETES / EXAMPLE).read_text())
    return found


def of_kind(kind: str, objects: Iterable[Object]) -> Mapping[str, Object]:
    """Objects of one kind, by name."""
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def from_kubernetes(secret: Mapping[str, str]) -> Mapping[str, Container]:
    """The containers of the manifests, by name; ``secret`` has what users put there."""
    objects = documents()
    workloads = [one for one in objects if one["kind"] in {"Deployment", "Job"}]
    configs = of_kind("ConfigMap", objects)
    found = [_container(one["spec"]["template"]["spec"], secret, configs) for one in workloads]
    return {one.name: one for one in found}


def _container(
    pod: Object, secret: Mapping[str, str], configs: Mapping[str, Object]
) -> Container:
    [container] = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    environ: dict[str, str] = {}
    for variable in container["env"]:
        wanted = variable.get("valueFrom", {}).get("secretKeyRef")
        if wanted is None:
            environ[variable["name"]] = variable["value"]
        elif wanted["key"] in secret or not wanted.get("optional"):
            environ[variable["name"]] = secret[wanted["key"]]
    return Container(
        name=container["name"],
        command=container["command"],
        environ=environ,
        ports=list(ports.values()),
        mounts={
            mount["mountPath"]: configs[volumes[mount["name"]]["configMap"]["name"]]["data"]
            for mount in container["volumeMounts"]
            if "configMap" in volumes[mount["name"]]
        },
        probes={
            kind: _probe(container[f"{kind}Probe"], ports)
            for kind in ("startup", "liveness", "readiness")
            if f"{kind}Probe" in container
        },
    )


def _probe(described: Object, ports: Mapping[str, int]) -> Probe:
    asked = described["httpGet"]
    return Probe(
        path=asked["path"],
        port=ports[asked["port"]],
        period=described.get("periodSeconds", 10),
        timeout=described.get("timeoutSeconds", 1),
        failures=described.get("failureThreshold", 3),
    )


def compose(variables: Mapping[str, str]) -> Object:
    """``compose.yaml`` with its variables filled in, as ``docker compose config`` does."""

    def fill(found: re.Match[str]) -> str:
        name, how, other = found["name"], found["how"], found["other"]
        value = variables.get(name, "")
        if not value and how == ":?":
            raise AssertionError(f"{name}: {other}")
        return value or other or ""

    text = (DEPLOY / "compose.yaml").read_text()
    pattern = r"\$\{(?P<name>\w+)((?P<how>:[?-])(?P<other>[^}]*))?\}"
    loaded: Object = yaml.safe_load(re.sub(pattern, fill, text))
    return loaded


def from_compose(variables: Mapping[str, str]) -> Mapping[str, Container]:
    """The containers of ``compose.yaml`` that are ours, by name."""
    images = stages(DOCKERFILE.read_text())
    found: dict[str, Container] = {}
    for name, service in compose(variables)["services"].items():
        if "build" not in service:
            continue
        health = service.get("healthcheck", {}).get("test", ["CMD"])
        assert health[0] == "CMD", "a health check without a shell"
        mounts = [text.split(":") for text in service.get("volumes", ())]
        found[name] = Container(
            name=name,
            command=entrypoint(images[service["build"]["target"]]),
            environ=service["environment"],
            ports=[
                int(value.rpartition(":")[2])
                for variable, value in service["environment"].items()
                if variable.endswith("_LISTEN") and ":" in value
            ],
            mounts={inside: Path(outside) for outside, inside, _ in mounts},
            health=health[1:],
        )
    return found

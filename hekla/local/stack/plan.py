"""What ``hekla up`` runs: the database, the local cluster and the services, as units."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from hekla.client.endpoints import HOME_VARIABLE, SERVICES
from hekla.domain.errors import InvalidError, PreconditionError
from hekla.local.stack.endpoints import LOOPBACK, Home, write_private
from hekla.local.stack.postgres import EmbeddedPostgres
from hekla.local.supervisor.unit import UnitSpec
from hekla.rpc.service import DATABASE_SCHEMES

POSTGRES: Final = "postgres"
MIGRATE: Final = "migrate"
CLUSTER: Final = "cluster"
KUBERNETES: Final = "kubernetes"
"""What the local cluster's port is for."""

WEBHOOK_HTTPS: Final = "webhook-https"
"""What the port is for at which the local cluster asks the webhook."""

SERVICE_RANK: Final = 0
CLUSTER_RANK: Final = 1
POSTGRES_RANK: Final = 2
"""At the end the services stop first, so that none takes the end of the pods for a failure."""

STOP_SIGNALS: Final = {POSTGRES: "SIGINT"}
"""Postgres takes SIGTERM for: once all clients have gone. SIGINT means now, and safely."""

NEEDS: Final[Mapping[str, Sequence[str]]] = {
    "webhook": (),
    "controller": ("webhook",),
    "scheduler": ("controller",),
    "flow": ("controller", "webhook"),
}
"""The services each service calls."""

OWN_SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "scheduler": {"HEKLA_SCHEDULER_SHARED_VOLUMES": "true"},
}
"""What a service has to know of the local cluster: its volumes are folders of this machine."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a stack is made from."""

    nodes: int = 3
    node_cpu: str = "16"
    node_memory: str = "64Gi"
    runtime: str = "process"
    watch_delay: str = "0s"
    replicas: Mapping[str, int] = field(default_factory=dict)
    """How many of each service, where it is not one."""
    database_url: str | None = None
    """A server of somebody else's; None for our own."""
    crds: bool = True
    """Whether jobs, queues and flows are custom resources too, and reviewed as such."""


FLAGS: Final = {one.name: "--" + one.name.replace("_", "-") for one in fields(Options)} | {
    "replicas": "--replicas",
    "database_url": "HEKLA_DATABASE_URL",
}
"""How users name each option."""


def merged(known: Mapping[str, Any], asked: Mapping[str, Any]) -> Options:
    """The options asked for, the others as they are known, else as by default."""
    names = {one.name for one in fields(Options)}
    return Options(**{k: v for k, v in {**known, **asked}.items() if k in names})


def refuse_differences(running: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Make sure that what is asked for is what runs.

    Raises:
        PreconditionError: it is not; the message names the first difference.
    """
    for name, value in asked.items():
        if running.get(name) != value:
            raise PreconditionError(
                f"already up with {_difference(name, running.get(name), value)};"
                " 'hekla down' first"
            )


def _difference(name: str, there: Any, asked: Any) -> str:
    if name == "database_url":  # a secret
        return f"another {FLAGS[name]}"
    if isinstance(asked, bool):
        flag = FLAGS[name]
        return flag if there else flag.replace("--", "--no-", 1)
    return f"{FLAGS[name]} {_shown(there)}, not {_shown(asked)}"


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{k}={v}" for k, v in sorted(value.items())) or "of one each"
    return str(value)


def replicas(service: str, options: Options) -> Sequence[str]:
    """The units of a service: itself, ``controller-2``, ``controller-3``, …."""
    count = options.replicas.get(service, 1)
    return [service, *(f"{service}-{number}" for number in range(2, count + 1))]


def purposes(options: Options) -> Iterable[str]:
    """What ports are needed for."""
    yield KUBERNETES
    for service in SERVICES:
        for unit in replicas(service, options):
            yield unit
            yield http_port(unit)
    if options.crds:
        yield WEBHOOK_HTTPS


def http_port(unit: str) -> str:
    """What the port of a unit's probes and metrics is called."""
    return f"{unit}-http"


def address(service: str, options: Options, ports: Mapping[str, int]) -> str:
    """Where clients find a service: any of its replicas that is there."""
    found = [f"{LOOPBACK}:{ports[unit]}" for unit in replicas(service, options)]
    return found[0] if len(found) == 1 else f"ipv4:{','.join(found)}"


def database_url(home: Home, options: Options) -> str:
    """Where the database is.

    Raises:
        InvalidError: the options name what is no Postgres.
    """
    url = options.database_url
    if url is None:
        return EmbeddedPostgres(home.postgres).url()
    if url.partition("://")[0] not in DATABASE_SCHEMES:
        raise InvalidError("HEKLA_DATABASE_URL is not postgresql://user@host:port/database")
    return url


def endpoints(home: Home, options: Options, ports: Mapping[str, int]) -> Mapping[str, Any]:
    """What ``endpoints.json`` says."""
    return {
        **{service: address(service, options, ports) for service in SERVICES},
        KUBERNETES: f"http://{LOOPBACK}:{ports[KUBERNETES]}",
        "database_url": database_url(home, options),
        "crds": options.crds,
        "ports": dict(ports),
    }


def specs(home: Home, options: Options, ports: Mapping[str, int]) -> Sequence[UnitSpec]:
    """The units of a stack."""
    base = {HOME_VARIABLE: str(home.folder)}
    return [
        *_database(home, options, base),
        UnitSpec(
            name=CLUSTER,
            argv=(
                *_module("hekla.local"),
                f"--home={home.cluster}",
                f"--port={ports[KUBERNETES]}",
                f"--nodes={options.nodes}",
                f"--node-cpu={options.node_cpu}",
                f"--node-memory={options.node_memory}",
                f"--runtime={options.runtime}",
                f"--watch-delay={options.watch_delay}",
                "--crds" if options.crds else "--no-crds",
            ),
            env=base,
            rank=CLUSTER_RANK,
        ),
        *(
            _service(service, unit, home, options, ports)
            for service in SERVICES
            for unit in replicas(service, options)
        ),
    ]


def _database(home: Home, options: Options, env: Mapping[str, str]) -> Iterable[UnitSpec]:
    module = _module("hekla.local.stack.database")
    if options.database_url is not None:
        reached = {
            **env,
            "HEKLA_DATABASE_URL": options.database_url,
        }  # no argument: ps shows those
        yield UnitSpec(name=MIGRATE, argv=(*module, "migrate"), env=reached, once=True)
        return
    yield UnitSpec(
        name=POSTGRES,
        argv=(*module, "serve", str(home.postgres)),
        env=env,
        stop_signal=STOP_SIGNALS[POSTGRES],
        stop_timeout=20.0,
        rank=POSTGRES_RANK,
    )
    argv = (*module, "migrate", f"--embedded={home.postgres}")
    yield UnitSpec(name=MIGRATE, argv=argv, env=env, after=(POSTGRES,), once=True)


def _service(
    service: str, unit: str, home: Home, options: Options, ports: Mapping[str, int]
) -> UnitSpec:
    prefix = f"HEKLA_{service.upper()}"
    return UnitSpec(
        name=unit,
        argv=_module(f"services.{service}"),
        env={
            HOME_VARIABLE: str(home.folder),
            "GRPC_VERBOSITY": "NONE",  # its own lines are no JSON; what fails is told by us
            "HEKLA_DATABASE_URL": database_url(home, options),
            "KUBECONFIG": str(kubeconfig(home)),
            **OWN_SETTINGS.get(service, {}),
            f"{prefix}_LISTEN": f"{LOOPBACK}:{ports[unit]}",
            f"{prefix}_HTTP_LISTEN": f"{LOOPBACK}:{ports[http_port(unit)]}",
            **{
                f"{prefix}_{other.upper()}": address(other, options, ports)
                for other in NEEDS[service]
            },
            **(_asked_by_the_cluster(unit, ports) if options.crds else {}),
        },
        after=(MIGRATE,),
        stop_timeout=15.0,
        rank=SERVICE_RANK,
    )


def _asked_by_the_cluster(unit: str, ports: Mapping[str, int]) -> Mapping[str, str]:
    """What makes the first webhook answer the local cluster: one port has one replica."""
    if unit != "webhook":
        return {}
    where = f"{LOOPBACK}:{ports[WEBHOOK_HTTPS]}"
    return {
        "HEKLA_WEBHOOK_HTTPS_LISTEN": where,
        "HEKLA_WEBHOOK_URL": f"https://{where}",
        "HEKLA_WEBHOOK_NAMESPACE": "kube-system",
    }


def kubeconfig(home: Home) -> Path:
    """The file that the local cluster writes; ``Home.kubeconfig`` leads to it."""
    return home.cluster / "kubeconfig"


def _module(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", name)


def _file(home: Home) -> Path:
    return home.run / "stack.json"


def save(home: Home, options: Options, units: Sequence[UnitSpec]) -> None:
    """Write down what the supervisor is to run."""
    content = {"options": asdict(options), "units": [unit.to_dict() for unit in units]}
    write_private(_file(home), content)


def load(home: Home) -> tuple[Mapping[str, Any], Sequence[UnitSpec]]:
    """What was written down: options and units.

    Raises:
        PreconditionError: there is nothing, or it is of no use.
    """
    try:
        content = json.loads(_file(home).read_bytes())
        return content["options"], [UnitSpec.from_dict(one) for one in content["units"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PreconditionError(f"{_file(home)} is not usable: {error}") from error


def forget(home: Home) -> None:
    """Remove what was written down: the stack went down as it was asked to."""
    with contextlib.suppress(FileNotFoundError):
        _file(home).unlink()

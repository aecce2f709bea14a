"""Settings of the webhook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from hekla.config import ConfigError, setting
from hekla.domain.errors import InvalidError
from hekla.domain.names import SCHEDULER_NAME
from hekla.rpc.service import ServiceConfig
from services.webhook.https.inventory import ENDPOINTS, REGISTERED
from services.webhook.https.registration import Target
from services.webhook.limits import groups_in
from services.webhook.rules.world import COMPATIBLE, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfig(ServiceConfig):
    """The webhook: admits objects and fills in their defaults."""

    listen: str = "127.0.0.1:50051"
    http_listen: str = "127.0.0.1:9101"

    scheduler_name: str = SCHEDULER_NAME
    """The scheduler of jobs that name none."""

    max_queue_depth: int = setting(default=5, minimum=1)
    """How many queues may stand below each other, under root."""

    max_pods_per_job: int = setting(default=100_000, minimum=1)
    """How many pods all tasks of a job may ask for together."""

    protect_root_queue: bool = True
    """Whether the resources of the root queue are frozen."""

    protect_used_queues: bool = False
    """Whether a queue in which pods run may not be deleted."""

    admission_extra: Literal["deny", "warn"] = "deny"
    """What rules do that Volcano does not have."""

    resource_groups: Path | None = None
    """A file of resource groups, as Volcano's --admission-conf has them; read again when it
    changes."""

    compat: tuple[str, ...] = ()
    """Differences from Volcano to take back, by the names of docs/differences.md:
    volume-without-claim."""

    https_listen: str | None = None
    """Where API servers are answered over HTTPS: host:port; without it they are not."""

    register: bool = True
    """Whether the API server is told to ask us, and whom to believe; needs https_listen."""

    enabled_admission: tuple[str, ...] = REGISTERED
    """The paths that it is told of; all are served. Those of pods cost a call for each pod."""

    kubeconfig: str | None = setting(default=None, env="KUBECONFIG")
    """How to reach Kubernetes; else by ~/.kube/config, or as a pod."""

    namespace: str = "hekla"
    """The namespace of the Service and of the Secret with our certificate."""

    service: str = "hekla-webhook"
    """The Service by which the API server reaches us, at port 443."""

    url: str | None = None
    """Where it reaches us instead of by the Service: https://host:port."""

    certificate_secret: str = "hekla-webhook-certificate"  # noqa: S105 - a name
    """The Secret that all replicas share, and that is made unless files are given."""

    certificate_file: Path | None = None
    """A certificate of somebody else's, PEM with its chain; read again when it changes."""

    key_file: Path | None = None
    """Its key, PEM without a pass phrase."""

    ca_file: Path | None = None
    """Who signed it, PEM: whom the API server is told to believe, else whom it believes."""

    read_timeout: timedelta = timedelta(seconds=10)
    """How long a client over HTTPS may take to say what it wants."""

    upkeep_period: timedelta = setting(timedelta(seconds=30), minimum=0.01)  # noqa: RUF009
    """How often certificate and registration are looked after."""

    def __post_init__(self) -> None:
        super(WebhookConfig, self).__post_init__()
        problems = list(self._problems())
        if problems:
            raise ConfigError(problems)

    def _problems(self) -> Iterator[str]:
        if (self.certificate_file is None) != (self.key_file is None):
            yield "HEKLA_WEBHOOK_CERTIFICATE_FILE and HEKLA_WEBHOOK_KEY_FILE go together"
        if self.ca_file is not None and self.certificate_file is None:
            yield "HEKLA_WEBHOOK_CA_FILE is for HEKLA_WEBHOOK_CERTIFICATE_FILE"
        unknown = [path for path in self.enabled_admission if path not in ENDPOINTS]
        if unknown:
            known = ", ".join(ENDPOINTS)
            yield f"HEKLA_WEBHOOK_ENABLED_ADMISSION has {', '.join(unknown)}, none of {known}"
        if self.url is not None and _host(self.url) is None:
            yield f"HEKLA_WEBHOOK_URL={self.url!r} is not https://host:port"

    @property
    def target(self) -> Target:
        """Where API servers find us."""
        return Target(self.namespace, self.service, self.url)

    @property
    def hosts(self) -> Sequence[str]:
        """The names by which they call us."""
        host = _host(self.url) if self.url is not None else None
        if host is not None:
            return [host]
        within = f"{self.service}.{self.namespace}"
        return [self.service, within, f"{within}.svc", f"{within}.svc.cluster.local"]

    @property
    def limits(self) -> Limits:
        """What the rules are to hold objects to."""
        return Limits(
            scheduler_name=self.scheduler_name,
            max_queue_depth=self.max_queue_depth,
            max_pods_per_job=self.max_pods_per_job,
            protect_root_queue=self.protect_root_queue,
            protect_used_queues=self.protect_used_queues,
            extra_warns=self.admission_extra == "warn",
            resource_groups=groups_in(self.resource_groups),
            compat=_known(self.compat),
        )


def _host(url: str) -> str | None:
    """The host of an HTTPS URL without a path; None if it is none."""
    try:
        parts = urlsplit(url)
        bare = not (parts.path or parts.query or parts.fragment or parts.username)
        return parts.hostname if parts.scheme == "https" and bare and parts.port != 0 else None
    except ValueError:  # a port that is no number
        return None


def _known(compat: tuple[str, ...]) -> frozenset[str]:
    for name in compat:
        if name not in COMPATIBLE:
            known = ", ".join(COMPATIBLE)
            raise InvalidError(f"compat must be among {known}, has {name!r}")
    return frozenset(compat)

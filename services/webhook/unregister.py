"""``python -m services.webhook unregister``: API servers ask us no more."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from hekla import config
from hekla.config import ConfigError, setting
from hekla.domain.errors import DomainError
from hekla.kube.client import KubeClient
from services.webhook.https import registration


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterConfig:
    """Removes the webhook configurations. A webhook that registers makes them again."""

    kubeconfig: str | None = setting(default=None, env="KUBECONFIG")
    """How to reach Kubernetes; else by ~/.kube/config, or as a pod."""


def main(argv: Sequence[str]) -> None:
    """Remove both configurations and tell of it."""
    try:
        settings = config.load(UnregisterConfig, "HEKLA_WEBHOOK", os.environ, argv)
        with KubeClient.start(settings.kubeconfig, isolated=False, service="webhook") as kube:
            gone = registration.unregister(kube)
    except (ConfigError, DomainError) as error:
        sys.stderr.write(f"hekla webhook unregister: {' '.join(str(error).split())}\n")
        raise SystemExit(1) from None
    for name in gone:
        sys.stdout.write(f"{name} removed\n")
    if not gone:
        sys.stdout.write("no webhooks are registered\n")

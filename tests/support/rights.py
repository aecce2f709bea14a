"""What the roles of ``deploy/`` grant, and what was asked of a local cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.support import deploy
from tests.support.local_cluster import LocalCluster

Access = tuple[str, str, str]
"""Agent, verb, resource with its group: ``pods/log``, ``priorityclasses.scheduling.k8s.io``."""

_UNANSWERED: Final = "a write was not answered: what became of it?"
_NO_STREAMING: Final = "the server does not send what there is as a watch: it is read by pages"
_FRESH: Final = "the certificate is due"
_MENDED: Final = "somebody changed it, or the authority is another"
_UNSEEN: Final = "a watch broke off while one was deleted: is it gone?"
_HELD: Final = "an API server that holds owner references to permissions asks for it"
_ADMISSION: Final = "admissionregistration.k8s.io"

RARE: Final[Mapping[Access, str]] = {
    ("hekla-controller", "get", "pods"): _UNANSWERED,
    ("hekla-controller", "list", "pods"): _NO_STREAMING,
    ("hekla-controller", "list", "namespaces"): _NO_STREAMING,
    ("hekla-controller", "list", "jobs.batch.volcano.sh"): _NO_STREAMING,
    ("hekla-controller", "list", "queues.scheduling.volcano.sh"): _NO_STREAMING,
    ("hekla-controller", "list", "podgroups.scheduling.volcano.sh"): _NO_STREAMING,
    ("hekla-controller", "list", "commands.bus.volcano.sh"): _NO_STREAMING,
    ("hekla-controller", "get", "podgroups.scheduling.volcano.sh"): _UNSEEN,
    ("hekla-controller", "update", "jobs/finalizers.batch.volcano.sh"): _HELD,
    ("hekla-controller", "update", "jobflows/finalizers.flow.volcano.sh"): _HELD,
    ("hekla-flow", "list", "jobs.batch.volcano.sh"): _UNSEEN,
    ("hekla-flow", "list", "jobflows.flow.volcano.sh"): _NO_STREAMING,
    ("hekla-flow", "list", "jobtemplates.flow.volcano.sh"): _NO_STREAMING,
    ("hekla-scheduler", "get", "pods"): _UNANSWERED,
    ("hekla-scheduler", "list", "pods"): _NO_STREAMING,
    ("hekla-scheduler", "list", "nodes"): _NO_STREAMING,
    ("hekla-scheduler", "list", "priorityclasses.scheduling.k8s.io"): _NO_STREAMING,
    ("hekla-scheduler", "list", "hypernodes.topology.volcano.sh"): _NO_STREAMING,
    ("hekla-webhook", "get", "queues.scheduling.volcano.sh"): "a queue is not stored yet",
    ("hekla-webhook", "patch", "secrets"): _FRESH,
    ("hekla-webhook", "patch", f"mutatingwebhookconfigurations.{_ADMISSION}"): _MENDED,
    ("hekla-webhook", "patch", f"validatingwebhookconfigurations.{_ADMISSION}"): _MENDED,
}
"""What is granted and need not happen in a run without mishaps, and when it does."""


def granted() -> set[Access]:
    """What the roles grant."""
    objects = deploy.documents()
    roles = [
        *deploy.of_kind("ClusterRole", objects).items(),
        *deploy.of_kind("Role", objects).items(),
    ]
    return {
        (name, verb, _resource(group, resource))
        for name, role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def asked(cluster: LocalCluster) -> set[Access]:
    """What our services asked of a cluster."""
    told = cluster.get("/hekla/accesses")["accesses"]
    return {
        (one["agent"], one["verb"], _resource(one["group"], one["resource"]))
        for one in told
        if one["agent"].startswith("hekla-")
    }


def _resource(group: str, resource: str) -> str:
    return f"{resource}.{group}" if group else resource

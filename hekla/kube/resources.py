"""The kinds that Hekla reads or writes, and where the API serves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind at one version."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    namespaced: bool
    kind: str

    @property
    def api_version(self) -> str:
        """As objects of the kind state it: ``v1`` or ``batch.volcano.sh/v1alpha1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection(self, namespace: str | None = None) -> str:
        """The path of all objects, or of those in ``namespace``."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace:
            return f"{root}/namespaces/{quote(namespace, safe='')}/{self.plural}"
        return f"{root}/{self.plural}"

    def path(self, namespace: str | None, name: str, subresource: str | None = None) -> str:
        """The path of one object, or of a part of it such as ``status``.

        A namespaced object without a namespace is looked for in ``default``.
        """
        path = f"{self.collection(namespace or 'default')}/{quote(name, safe='')}"
        return f"{path}/{subresource}" if subresource else path


def _core(plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource("", "v1", plural, namespaced, kind)


def _in(
    group: str, version: str, plural: str, kind: str, *, namespaced: bool = True
) -> Resource:
    return Resource(group, version, plural, namespaced, kind)


PODS: Final = _core("pods", "Pod")
NODES: Final = _core("nodes", "Node", namespaced=False)
NAMESPACES: Final = _core("namespaces", "Namespace", namespaced=False)
SERVICES: Final = _core("services", "Service")
CONFIGMAPS: Final = _core("configmaps", "ConfigMap")
SECRETS: Final = _core("secrets", "Secret")
EVENTS: Final = _core("events", "Event")
PERSISTENTVOLUMECLAIMS: Final = _core("persistentvolumeclaims", "PersistentVolumeClaim")
RESOURCEQUOTAS: Final = _core("resourcequotas", "ResourceQuota")
PRIORITYCLASSES: Final = _in(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
LEASES: Final = _in("coordination.k8s.io", "v1", "leases", "Lease")
PODDISRUPTIONBUDGETS: Final = _in("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
NETWORKPOLICIES: Final = _in("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
CUSTOMRESOURCEDEFINITIONS: Final = _in(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
MUTATINGWEBHOOKCONFIGURATIONS: Final = _in(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATINGWEBHOOKCONFIGURATIONS: Final = _in(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)

JOBS: Final = _in("batch.volcano.sh", "v1alpha1", "jobs", "Job")
CRONJOBS: Final = _in("batch.volcano.sh", "v1alpha1", "cronjobs", "CronJob")
COMMANDS: Final = _in("bus.volcano.sh", "v1alpha1", "commands", "Command")
PODGROUPS: Final = _in("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
QUEUES: Final = _in("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
JOBFLOWS: Final = _in("flow.volcano.sh", "v1alpha1", "jobflows", "JobFlow")
JOBTEMPLATES: Final = _in("flow.volcano.sh", "v1alpha1", "jobtemplates", "JobTemplate")
HYPERNODES: Final = _in(
    "topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode", namespaced=False
)
NUMATOPOLOGIES: Final = _in(
    "nodeinfo.volcano.sh", "v1alpha1", "numatopologies", "Numatopology", namespaced=False
)

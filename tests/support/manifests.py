"""Manifests as they come, and what the decoder says of them."""

from __future__ import annotations

from typing import Any

import pytest

from hekla.api import decode
from hekla.api.job import Job
from hekla.domain.errors import InvalidError
from tests.support.objects import job_manifest, pod_template


def manifest(kind: str, **spec: Any) -> dict[str, Any]:
    """A manifest of a kind."""
    metadata = {"name": "x"}
    [version] = [version for version, known in decode.KINDS if known == kind]
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


PROBE = "spec.flows[1].dependsOn.probe"


def probing(**probe: Any) -> dict[str, Any]:
    """A flow whose second step waits for such a probe."""
    depends = {"targets": ["a"], "probe": probe}
    return manifest("JobFlow", flows=[{"name": "a"}, {"name": "b", "dependsOn": depends}])


def job(**spec: Any) -> Job:
    """A job as it is decoded."""
    found = decode.decode(job_manifest(**spec))
    assert isinstance(found, Job)
    return found


def task(**more: Any) -> dict[str, Any]:
    """A task as it comes."""
    return {"name": "t", "replicas": 1, "template": pod_template()} | more


def complaints(raw: Any) -> dict[str, str]:
    """What is wrong with it, by path."""
    with pytest.raises(InvalidError) as refused:
        decode.decode(raw)
    return {violation.path: violation.message for violation in refused.value.violations}

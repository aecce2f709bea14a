"""What the definitions of the kinds say, and that Kubernetes would take them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hekla.api.crd import DEFINITIONS, Definition, Schema, schema
from hekla.api.decode import KINDS
from hekla.api.job import Job
from hekla.api.job_flow import JobFlow
from hekla.kube import resources
from tools.crds import drawn

BY_KIND = {definition.kind: definition for definition in DEFINITIONS}


def at(found: Schema, path: str) -> Any:
    for part in path.split("."):
        found = found["items"] if part == "[]" else found["properties"][part]
    return found


def nodes(found: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, found
    for name, inner in found.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in found:
            yield from nodes(found[key], f"{path}[]")


def test_every_kind_is_defined_where_the_client_looks_for_it() -> None:
    assert {(d.model.model_fields["api_version"].default, d.kind) for d in DEFINITIONS} == set(
        KINDS
    )
    known = {
        (one.group, one.version, one.plural, one.namespaced, one.kind)
        for one in vars(resources).values()
        if isinstance(one, resources.Resource) and one.group.endswith("volcano.sh")
    }
    assert known == {(d.group, d.version, d.plural, d.namespaced, d.kind) for d in DEFINITIONS}


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: one.kind)
def test_schemas_are_structural(definition: Definition) -> None:
    for path, node in nodes(schema(definition.model)):
        free = node.get("x-kubernetes-preserve-unknown-fields")
        mixed = node.get("x-kubernetes-int-or-string")
        assert "type" in node or free or mixed, path
        # Kubernetes takes no schema whose fields are closed and open at once.
        assert not ("properties" in node and "additionalProperties" in node), path
        assert set(node.get("required", ())) <= set(node.get("properties", ())), path
        if "default" in node and "enum" in node:
            assert node["default"] in node["enum"], path


def test_bounds_and_defaults_are_those_of_the_models() -> None:
    job = schema(Job)
    assert at(job, "spec.queue")["default"] == "default"
    assert at(job, "spec.maxRetry") == {
        "type": "integer",
        "format": "int32",
        "minimum": 0,
        "default": 3,
    }
    assert at(job, "spec.minSuccess")["minimum"] == 1
    assert at(job, "spec.tasks")["minItems"] == 1
    assert at(job, "spec.tasks.[].name")["maxLength"] == 63
    assert "OutOfSync" in at(job, "spec.policies.[].events.[]")["enum"]
    assert at(job, "spec.tasks.[].template") == {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    assert at(job, "spec.volumes.[]")["required"] == ["mountPath"]
    queue = schema(BY_KIND["Queue"].model)
    capability = at(queue, "spec.capability")["additionalProperties"]
    assert capability["x-kubernetes-int-or-string"] is True
    assert at(queue, "spec.weight")["maximum"] == 65535
    assert at(queue, "spec.dequeueStrategy")["default"] == "traverse"


def test_nothing_is_filled_into_a_status_or_a_patch_of_a_flow() -> None:
    for definition in DEFINITIONS:
        for path, node in nodes(schema(definition.model)):
            if path.startswith(".status"):
                assert "default" not in node, path
    patch = at(schema(JobFlow), "spec.flows.[].patch")
    assert [path for path, node in nodes(patch) if "default" in node] == []


def test_columns_are_those_that_people_know() -> None:
    job = BY_KIND["Job"].manifest()["spec"]["versions"][0]
    assert [column["name"] for column in job["additionalPrinterColumns"]] == [
        *("STATUS", "minAvailable", "RUNNINGS", "AGE", "QUEUE")
    ]
    assert [c.get("priority") for c in job["additionalPrinterColumns"]][-1] == 1
    assert BY_KIND["PodGroup"].manifest()["spec"]["versions"][0]["subresources"] == {}
    assert BY_KIND["Job"].manifest()["spec"]["names"]["shortNames"] == ["vcjob", "vj"]


def test_what_is_drawn_can_be_read_again() -> None:
    for path, text in drawn().items():
        definition = yaml.safe_load(text)
        assert path.name == "{}_{}.yaml".format(
            definition["spec"]["group"], definition["spec"]["names"]["plural"]
        )
        assert path == Path("deploy/crds") / path.name

"""What the API says about itself, in the forms that clients ask for."""

from __future__ import annotations

import gzip
import re
from typing import Any

import orjson
import pytest

from hekla.local.discovery.groups import Discovery, Document
from hekla.local.discovery.openapi import OpenApi
from tests.support.defined import registry

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
JSON = "application/json"


def body(found: Document | None) -> Any:
    assert found is not None
    return orjson.loads(found.body)


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (f"{V2},{V2BETA1},{JSON}", "v2"),
        (f"{V2BETA1},{JSON}", "v2beta1"),
        (JSON, ""),
        ("", ""),
        (f"{JSON},{V2}", ""),
    ],
)
def test_groups_are_told_in_the_form_that_the_client_prefers(accept: str, version: str) -> None:
    found = Discovery(registry()).page("/apis", accept)

    assert found is not None
    if not version:
        assert body(found)["kind"] == "APIGroupList"
        return
    assert found.content_type == (
        f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    )
    assert body(found)["apiVersion"] == f"apidiscovery.k8s.io/{version}"


def test_both_forms_tell_the_same() -> None:
    pages = Discovery(registry())

    for path in ("api", "apis"):
        for group in body(pages.page(path, V2))["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                where = f"apis/{name}/{version['version']}" if name else "api/v1"
                plain = body(pages.page(where, JSON))["resources"]
                told = []
                for one in version["resources"]:
                    told.append(
                        (
                            one["resource"],
                            one["responseKind"]["kind"],
                            one.get("shortNames", []),
                            one.get("categories", []),
                        )
                    )
                    told += [
                        (
                            f"{one['resource']}/{part['subresource']}",
                            part["responseKind"]["kind"],
                            [],
                            [],
                        )
                        for part in one.get("subresources", [])
                    ]
                assert told == [
                    (
                        one["name"],
                        one["kind"],
                        one.get("shortNames", []),
                        one.get("categories", []),
                    )
                    for one in plain
                ]


def test_what_is_told_changes_with_what_is_served() -> None:
    served = registry()
    pages, schemas = Discovery(served), OpenApi(served)

    def hashes() -> Any:
        index = schemas.page("openapi/v3", wanted_hash="", compressed=False, known="")
        return {path: each["serverRelativeURL"] for path, each in body(index)["paths"].items()}

    before = hashes()
    assert pages.page("apis/bus.volcano.sh/v1alpha1", JSON) is not None
    served.withdraw("commands.bus.volcano.sh")

    assert pages.page("apis/bus.volcano.sh/v1alpha1", JSON) is None
    assert before.keys() - hashes().keys() == {"apis/bus.volcano.sh/v1alpha1"}
    served.withdraw("cronjobs.batch.volcano.sh")
    batch = "apis/batch.volcano.sh/v1alpha1"
    assert hashes()[batch] != before[batch]
    assert hashes()["api/v1"] == before["api/v1"]


def test_a_schema_may_be_kept_under_its_hash_and_comes_compressed() -> None:
    pages = OpenApi(registry())
    path = "openapi/v3/apis/batch.volcano.sh/v1alpha1"
    index = body(pages.page("openapi/v3", wanted_hash="", compressed=False, known=""))
    url = index["paths"]["apis/batch.volcano.sh/v1alpha1"]["serverRelativeURL"]
    digest = url.rpartition("=")[2]

    plain = pages.page(path, wanted_hash="old", compressed=False, known="")
    packed = pages.page(path, wanted_hash=digest, compressed=True, known="")
    again = pages.page(path, wanted_hash=digest, compressed=True, known=f'"{digest}"')

    assert plain is not None
    assert packed is not None
    assert again is not None
    assert gzip.decompress(packed.body) == plain.body
    assert dict(packed.headers)[b"cache-control"].startswith(b"public")
    assert b"cache-control" not in dict(plain.headers), "another hash names another document"
    assert again.body == b""


def test_every_kind_is_told_with_its_paths_and_its_schema() -> None:
    document = body(
        OpenApi(registry()).page(
            "openapi/v3/apis/batch.volcano.sh/v1alpha1",
            wanted_hash="",
            compressed=False,
            known="",
        )
    )

    job = {"group": "batch.volcano.sh", "version": "v1alpha1", "kind": "Job"}
    patch = document["paths"][
        "/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs/{name}"
    ]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == job
    assert "fieldValidation" in [each["name"] for each in patch["parameters"]]
    schemas = document["components"]["schemas"]
    assert schemas["sh.volcano.batch.v1alpha1.Job"]["x-kubernetes-group-version-kind"] == [job]
    [reference] = schemas["sh.volcano.batch.v1alpha1.Job"]["properties"]["metadata"]["allOf"]
    assert reference["$ref"].rpartition("/")[2] in schemas


def test_every_reference_leads_somewhere() -> None:
    pages = OpenApi(registry())
    index = body(pages.page("openapi/v3", wanted_hash="", compressed=False, known=""))

    for path in index["paths"]:
        page = pages.page(f"openapi/v3/{path}", wanted_hash="", compressed=False, known="")
        assert page is not None
        schemas = set(body(page)["components"]["schemas"])
        found = set(re.findall(rb'"\$ref":"#/components/schemas/([^"]+)"', page.body))
        assert {each.decode() for each in found} <= schemas, path


def test_the_fields_of_pods_are_told() -> None:
    page = OpenApi(registry()).page(
        "openapi/v3/api/v1", wanted_hash="", compressed=False, known=""
    )

    schemas = body(page)["components"]["schemas"]
    spec = schemas["io.k8s.api.v1.PodSpec"]["properties"]
    assert spec["restartPolicy"] == {"type": "string"}
    assert spec["containers"]["items"]["allOf"][0]["$ref"].endswith(".Container")

"""Lint reads files as people write them, and says what it could not check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from services.webhook.lint.command import main
from tests.support.admission_rows import job, queue

HEAD = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\n"
TEMPLATE = "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}"


def run(text: str | bytes, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["-", *arguments], input=text)


def in_json(text: str | bytes, *arguments: str) -> Any:
    return json.loads(run(text, "-o", "json", *arguments).stdout)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{HEAD}spec:\n  tasks:\n  - name: t\n    replicas: 1\n    replicas: 2\n",
            "has the key 'replicas' again",
        ),
        (f"{HEAD}spec: {{minAvailble: 2}}\n", "did you mean minAvailable?"),
        (f'{HEAD}spec: {{tasks: [{{name: t, replicas: "two", {TEMPLATE}}}]}}\n', "an integer"),
        (f"{HEAD}spec: {{tasks: [{{name: t, replicas: 1.5, {TEMPLATE}}}]}}\n", "an integer"),
        (f'{HEAD}spec: {{policies: [{{timeout: "10"}}]}}\n', "must be a duration"),
        ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n", "for a Job of Volcano"),
        ("", "has no object in it"),
        (f"{HEAD}\tspec: {{}}\n", "line 4"),
        (b"a: \xff\n", "not UTF-8"),
        ("a: &a [*a]\n", "inside itself"),
        ("kind: " + "[" * 500 + "]" * 500, "nested more than"),
        (f"{HEAD}spec: null\n", "is required"),
        (f"{HEAD}spec: []\n", "must be an object"),
        (f"{HEAD}spec: {{maxRetry: {'9' * 5000}}}\n", "maxRetry"),
        (f'{HEAD}spec: {{queue: "a\\0b"}}\n', "NUL"),
    ],
)
def test_a_malformed_manifest_is_refused_with_what_is_wrong(
    text: str | bytes, message: str
) -> None:
    """C125."""
    result = run(text)

    assert result.exit_code == 1, result.output
    assert message in result.stdout


def test_each_document_of_a_file_is_judged_on_its_own() -> None:
    """C125."""
    good, bad = json.dumps(job()), json.dumps(job(name="k", minAvailable=-1))
    found = in_json(f"{good}\n---\n{bad}\n---\nkind: 5\n")

    assert [(each["line"], each["path"], each["rule"]) for each in found["violations"]] == [
        (4, "apiVersion", "manifest"),
        (5, "kind", "manifest"),
        (3, "spec.minAvailable", "definition"),
    ]


def test_a_finding_names_the_line_of_its_field() -> None:
    text = """\
# a comment
apiVersion: v1
kind: List
items:
- apiVersion: batch.volcano.sh/v1alpha1
  kind: Job
  metadata:
    name: j
    labels: {"x.io/y": "!"}
  spec:
    tasks:
    - name: t
      template:
        spec:
          containers:
          - name: c
            image: i
            comand: [sh]
"""
    found = in_json(f"{text}---\n{text.replace('comand', 'command')}")
    lines = {each["path"]: each["line"] for each in found["violations"][:2]}

    assert lines == {
        "metadata.labels[x.io/y]": 9,
        "spec.tasks[0].template.spec.containers[0].comand": 18,
    }


def test_what_was_not_checked_is_named() -> None:
    found = run(json.dumps(job(queue="mine")) + "\n---\napiVersion: v1\nkind: ConfigMap\n")

    assert found.exit_code == 0
    assert "not checked: whether queue mine exists" in found.stdout
    assert "not checked: whether some node has room" in found.stdout
    assert 'not checked: stdin:2: "ConfigMap", which is no kind of ours' in found.stdout


def test_a_queue_beside_its_job_is_known(tmp_path: Path) -> None:
    (tmp_path / "world.yaml").write_text(json.dumps(queue("other")))
    both = "\n---\n".join(map(json.dumps, (job(queue="mine"), queue("mine"))))

    assert run(both, "--world", str(tmp_path / "world.yaml")).exit_code == 0
    refused = run(json.dumps(job(queue="mine")), "--world", str(tmp_path / "world.yaml"))
    assert 'spec.queue: does not exist: "mine" [job.queue]' in refused.stdout


def test_sarif_names_rules_and_places() -> None:
    log = json.loads(run(json.dumps(job(minAvailable=9)), "-o", "sarif").stdout)

    [result] = log["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("job.minimum", "error")
    [place] = result["locations"]
    assert place["logicalLocations"] == [{"fullyQualifiedName": "spec.minAvailable"}]
    assert place["physicalLocation"]["region"] == {"startLine": 1}
    assert [rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]] == ["job.minimum"]


def test_a_file_that_is_not_there_is_one_line() -> None:
    result = CliRunner().invoke(main, ["/nowhere/job.yaml"])

    assert (result.exit_code, result.stdout) == (64, "")
    assert result.stderr == "hekla lint: /nowhere/job.yaml: No such file or directory\n"

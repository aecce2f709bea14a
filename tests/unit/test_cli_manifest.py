"""What a manifest may hold, and how the command line tells what is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from hekla.cli import manifest
from hekla.cli.main import main
from hekla.domain.errors import InvalidError

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: job-1}
spec:
  minAvailable: 1
  tasks:
  - name: nginx
    replicas: 1
    template: {spec: {containers: [{name: nginx, command: [sleep, "1"]}]}}
"""
QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: test}
"""


def test_objects_get_the_namespace_of_the_command_and_queues_get_none() -> None:
    items = manifest.parse(f"{QUEUE}---\n{JOB}".encode(), "f.yaml", "team")

    assert [(item.name, item.object.metadata.namespace) for item in items] == [
        ("queue.scheduling.volcano.sh/test", ""),
        ("job.batch.volcano.sh/job-1", "team"),
    ]
    assert items[1].where == "f.yaml: document 2 (line 4)"


def test_an_empty_queue_is_an_absent_one() -> None:
    data = JOB.replace("spec:\n", 'spec:\n  queue: ""\n', 1).encode()

    [item] = manifest.parse(data, "f.yaml", None)

    assert item.object.spec.queue == "default"  # type: ignore[union-attr]


def test_all_that_is_wrong_in_all_documents_is_told_at_once() -> None:
    wrong = JOB.replace("replicas: 1", "replicas: three").replace("minAvailable", "minAvailble")

    with pytest.raises(InvalidError) as refused:
        manifest.parse(
            f"{wrong}---\n{QUEUE}---\nkind: Pod\napiVersion: v1\n".encode(), "f", None
        )

    told = [str(violation) for violation in refused.value.violations]
    assert len(told) == 3
    assert (
        "f: document 1 (line 1): spec.minAvailble: is no field of this kind"
        in told[0] + told[1]
    )
    assert any("spec.tasks[0].replicas: must be an integer, is " in one for one in told)
    assert told[2].startswith("f: document 3 (line 14): kind: must be one of Job")


BAD = {
    "not YAML": (b"kind: [Job\n", r"f\.yaml: line \d+: is no YAML"),
    "a tab": (b"kind: Job\n\tspec: {}\n", r"line 2: is no YAML: a tab"),
    "not UTF-8": (b"kind: J\xff\n", r"line 1: has the byte 0xff, which is not UTF-8"),
    "too large": (b"#" * (3 * 2**20 + 1), r"must be no more than 3145728 bytes"),
    "empty": (b"# nothing\n", r"has no object in it"),
    "a list": (b"- kind: Job\n", r"line 1: must be an object, is a list"),
    "no kind": (b"metadata: {}\n", r"document 1 \(line 1\): apiVersion: is required"),
    "unknown kind": (JOB.replace(": Job", ": Jobb").encode(), r"kind: must be one of Job"),
    "Kubernetes' own Job": (
        JOB.replace("batch.volcano.sh/v1alpha1", "batch/v1").encode(),
        r"apiVersion: must be batch\.volcano\.sh/v1alpha1",
    ),
    "unknown field": (
        JOB.replace("replicas:", "replica:").encode(),
        r"spec\.tasks\[0\]\.replica: is no field .*did you mean replicas\?",
    ),
    "wrong type": (
        JOB.replace("minAvailable: 1", 'minAvailable: "1"').encode(),
        r"spec\.minAvailable: must be an integer, is .1.",
    ),
    "out of bounds": (
        JOB.replace("replicas: 1", "replicas: -1").encode(),
        r"spec\.tasks\[0\]\.replicas: must be >= 0, is -1",
    ),
    "a key twice": (JOB.encode() + b"kind: Job\n", r"line 10: has the key 'kind' "),
    "another namespace": (
        JOB.replace("{name: job-1}", "{name: job-1, namespace: other}").encode(),
        r"metadata\.namespace: is other, and the command says team",
    ),
    "a bomb": (
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in b"bcdefghi"
        ),
        r"must not hold more than \d+ values",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_that_says_where_and_an_exit_code(
    name: str, tmp_path: Path
) -> None:
    data, expected = BAD[name]
    (tmp_path / "f.yaml").write_bytes(data)

    # No service is there: that nothing is said of it shows that nothing was sent.
    result = CliRunner().invoke(
        main,
        ["apply", "-n", "team", "-f", str(tmp_path / "f.yaml")],
        obj={"HEKLA_HOME": str(tmp_path)},
    )

    assert result.exit_code == 1
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert re.search(expected, line), line


def test_standard_input_is_read_for_a_dash(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        main, ["apply", "-f", "-"], input=b"kind: \xff", obj={"HEKLA_HOME": str(tmp_path)}
    )

    assert "error: standard input: line 1: has the byte 0xff" in result.stderr

"""Commands and the client against a controller over a real socket."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from hekla.api.decode import decode
from hekla.api.job import Job
from hekla.client import Client
from hekla.client.follow import follow
from hekla.domain.errors import AlreadyExistsError, NotFoundError, UnavailableError
from tests.support.commands import QUEUE, job, manifest, run, running, submit
from tests.support.controller import Controller, controller_at
from tests.support.waiting import wait_until


def test_apply_sends_queues_first_and_says_what_became_of_each(
    address: str, served: Controller
) -> None:
    first = run(address, "apply", "-f", "-", stdin=manifest(job(), QUEUE))
    second = run(address, "apply", "-f", "-", stdin=manifest(job(), QUEUE))
    third = run(address, "apply", "-f", "-", stdin=manifest(job(minAvailable=0)))

    assert first.stdout.splitlines() == [
        "queue.scheduling.volcano.sh/test created",
        "job.batch.volcano.sh/job-1 created",
    ]
    assert second.stdout.splitlines() == [
        "queue.scheduling.volcano.sh/test unchanged",
        "job.batch.volcano.sh/job-1 unchanged",
    ]
    assert third.stdout == "job.batch.volcano.sh/job-1 configured\n"
    assert all(served.requests)
    assert len(set(served.requests)) == len(served.requests)


def test_apply_shows_warnings_apart_from_its_output(address: str) -> None:
    volumes = [{"mountPath": "/data"}]

    result = run(address, "apply", "-f", "-", stdin=manifest(job(volumes=volumes)))

    assert result.stdout == "job.batch.volcano.sh/job-1 created\n"
    assert result.stderr == (
        "warning: job.batch.volcano.sh/job-1: spec.volumes: is not served yet\n"
    )


def test_what_admission_refuses_is_told_with_its_document_and_what_was_not_sent(
    address: str, served: Controller
) -> None:
    tasks = [{"name": "a", "replicas": 1}, {"name": "a", "replicas": 1}]
    text = manifest(job("one"), job("two", tasks=tasks), job("three"))

    result = run(address, "apply", "-f", "-", stdin=text)

    assert result.exit_code == 1
    assert result.stdout == "job.batch.volcano.sh/one created\n"
    [line] = result.stderr.splitlines()
    assert "document 2" in line
    assert (
        "job.batch.volcano.sh/two: spec.tasks[1].name: is a already (1 more not sent)" in line
    )
    assert list(served.jobs) == [("default", "one")]


def test_a_document_that_cannot_be_read_keeps_all_from_being_sent(
    address: str, served: Controller
) -> None:
    text = manifest(QUEUE, job("one"), job("two", replicas=3))

    result = run(address, "apply", "-f", "-", stdin=text)

    assert result.exit_code == 1
    assert "document 3" in result.stderr
    assert "spec.replicas: is no field" in result.stderr
    assert (served.jobs, served.queues) == ({}, {})


def test_lists_have_kubernetes_shape_and_can_be_applied_again(
    address: str, served: Controller, client: Client
) -> None:
    for number in range(3):
        submit(served, client, f"job-{number}")

    as_json = run(address, "job", "list", "-o", "json").stdout
    as_yaml = run(address, "job", "list", "-o", "yaml").stdout
    names = run(address, "job", "list", "-o", "name").stdout

    found = json.loads(as_json)
    assert (found["apiVersion"], found["kind"]) == ("v1", "List")
    assert [item["metadata"]["name"] for item in found["items"]] == ["job-0", "job-1", "job-2"]
    template = found["items"][0]["spec"]["tasks"][0]["template"]
    assert template["spec"]["containers"][0]["ports"] == [2222]
    assert yaml.safe_load(as_yaml) == found
    assert names.splitlines()[0] == "job.batch.volcano.sh/job-0"
    again = run(address, "apply", "-f", "-", stdin=as_yaml)
    assert again.stdout.splitlines() == [
        f"job.batch.volcano.sh/job-{number} unchanged" for number in range(3)
    ]


def test_a_table_shows_the_namespace_only_when_all_are_asked_for(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)

    assert run(address, "job", "list").stdout.split()[0] == "NAME"
    everywhere = run(address, "job", "list", "-A").stdout.splitlines()
    assert everywhere[0].split()[:2] == ["NAMESPACE", "NAME"]
    assert everywhere[1].split()[:4] == ["default", "job-1", "test", "Pending"]
    empty = run(address, "job", "list", "-n", "other")
    assert (empty.stdout, empty.stderr, empty.exit_code) == (
        "",
        "No jobs found in namespace other.\n",
        0,
    )


def test_lists_come_in_pages(served: Controller, client: Client) -> None:
    for number in range(501):
        submit(served, client, f"job-{number:03}")

    found = client.jobs.list("default")

    assert len({job.metadata.name for job in found.items}) == 501
    assert found.cursor == "501"


def test_wait_is_met_by_a_phase_that_comes(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)

    with running(address, "job", "wait", "job-1", "--for", "Completed") as results:
        wait_until(lambda: served.watches, what="the watch")
        served.move("job-1", "Running")
        served.move("job-1", "Completed")

    [result] = results
    assert (result.exit_code, result.stdout) == (0, "job default/job-1 reached Completed\n")
    assert result.stderr.splitlines() == [
        "job-1: Pending",
        "job-1: Running",
        "job-1: Completed",
    ]


def test_wait_is_met_at_once_by_a_phase_that_was(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)
    served.move("job-1", "Running")
    served.move("job-1", "Completed")

    result = run(address, "job", "wait", "job-1", "--for", "running")

    assert (result.exit_code, result.stdout) == (0, "job default/job-1 reached Running\n")
    assert served.watches == 0


def test_wait_fails_as_soon_as_the_job_ends_otherwise(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)

    with running(address, "job", "wait", "job-1", "--for", "Completed") as results:
        wait_until(lambda: served.watches, what="the watch")
        served.move("job-1", "Failed")

    [result] = results
    assert result.exit_code == 1
    assert "error: job default/job-1 is Failed and will not be Completed" in result.stderr


def test_wait_fails_as_soon_as_the_job_is_deleted_though_another_takes_its_name(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)

    with running(address, "job", "wait", "job-1", "--for", "Running") as results:
        wait_until(lambda: served.watches, what="the watch")
        served.remove("job-1")
        submit(served, client)
        served.move("job-1", "Running")

    assert results[0].exit_code == 1
    assert "was deleted and will not be Running" in results[0].stderr


def test_wait_times_out_with_what_the_job_is(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)

    result = run(address, "job", "wait", "job-1", "--for", "Running", "--timeout", "200ms")

    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "error: timed out after 200ms: job default/job-1 is Pending"
    )


def test_wait_for_a_job_that_is_not_there_says_so(address: str) -> None:
    result = run(address, "job", "wait", "job-9", "--for", "Running")

    assert (result.exit_code, result.stderr) == (1, "error: job default/job-9 does not exist\n")


def test_wait_goes_on_when_the_controller_comes_back(tmp_path: Path) -> None:
    served, listen = Controller(), f"unix:{tmp_path}/s"
    with ExitStack() as first, Client(addresses={"controller": listen}) as client:
        first.enter_context(controller_at(listen, served))
        submit(served, client)
        with running(listen, "job", "wait", "job-1", "--for", "Completed") as results:
            wait_until(lambda: served.watches, what="the watch")
            first.close()
            served.move("job-1", "Completed")
            with controller_at(listen, served):
                wait_until(lambda: results, what="the end of the wait")

    assert results[0].exit_code == 0


def test_following_survives_a_cursor_that_is_too_old(
    served: Controller, client: Client
) -> None:
    made = submit(served, client)
    cursor = client.jobs.cursor("default")
    served.move("job-1", "Running")
    served.forget_changes()

    sightings = follow(client.jobs, made, cursor=cursor)
    first = next(sightings)
    served.remove("job-1")
    last = next(sightings)

    assert (first.job.status.state.phase, first.gone) == ("Running", False)
    assert last.gone
    assert next(sightings, None) is None


def test_following_finds_a_job_gone_while_the_cursor_grew_too_old(
    served: Controller, client: Client
) -> None:
    made = submit(served, client)
    cursor = client.jobs.cursor("default")
    served.remove("job-1")
    submit(served, client)
    served.forget_changes()

    assert [sighting.gone for sighting in follow(client.jobs, made, cursor=cursor)] == [True]


def test_delete_returns_once_the_job_is_gone(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)

    with running(address, "job", "delete", "job-1") as results:
        wait_until(lambda: served.watches, what="the watch")
        assert results == []
        served.remove("job-1")

    assert results[0].stdout == "job.batch.volcano.sh/job-1 deleted\n"


def test_delete_does_not_wait_when_told_so_nor_longer_than_told(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)

    at_once = run(address, "job", "delete", "job-1", "--wait=false")
    timed_out = run(address, "job", "delete", "job-1", "--timeout", "100ms")

    assert (at_once.exit_code, at_once.stdout) == (0, "job.batch.volcano.sh/job-1 deleted\n")
    assert timed_out.exit_code == 2
    assert "job default/job-1 is not gone after 100ms; its removal goes on" in timed_out.stderr


def test_one_job_that_is_not_there_does_not_keep_the_others(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)

    result = run(address, "job", "delete", "nothing", "job-1", "--wait=false")

    assert (result.exit_code, result.stdout) == (1, "job.batch.volcano.sh/job-1 deleted\n")
    assert result.stderr == "error: job default/nothing does not exist\n"


def test_deleting_a_manifest_takes_jobs_before_queues_and_goes_on_after_a_failure(
    address: str, served: Controller
) -> None:
    run(address, "apply", "-f", "-", stdin=manifest(QUEUE, job()))
    text = manifest(QUEUE, job("missing"), job())

    def remove_once_watched() -> None:
        wait_until(lambda: served.watches, what="the watch")
        served.remove("job-1")

    removed = threading.Thread(target=remove_once_watched)
    removed.start()
    result = run(address, "delete", "-f", "-", stdin=text)
    removed.join()

    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "job.batch.volcano.sh/job-1 deleted",
        "queue.scheduling.volcano.sh/test deleted",
    ]
    assert "job default/missing does not exist" in result.stderr
    assert (served.jobs, served.queues) == ({}, {})
    again = run(address, "delete", "-f", "-", "--ignore-not-found", stdin=text)
    assert (again.exit_code, again.output) == (0, "")


def test_one_pods_log_comes_as_it_is_and_several_with_their_names(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)
    served.add_pod("job-1", "w", 0, b"a\nb", b"c\n")
    one = run(address, "job", "logs", "job-1")
    served.add_pod("job-1", "w", 1, b"x")

    several = run(address, "job", "logs", "job-1")
    followed = run(address, "job", "logs", "job-1", "-f")
    chosen = run(address, "job", "logs", "job-1", "--task", "w", "--index", "1")

    assert one.stdout == "a\nbc\n"
    assert several.stdout.splitlines() == [
        "[job-1-w-0] a",
        "[job-1-w-0] bc",
        "[job-1-w-1] x",
    ]
    assert sorted(followed.stdout.splitlines()) == several.stdout.splitlines()
    assert chosen.stdout == "x"


def test_logs_of_what_has_none_say_why(
    address: str, served: Controller, client: Client
) -> None:
    submit(served, client)
    without = run(address, "job", "logs", "job-1")
    served.add_pod("job-1", "w", 0, b"a\n")
    served.add_pod("job-1", "w", 1)
    del served.logs["job-1-w-1"]

    partly = run(address, "job", "logs", "job-1")

    assert without.stderr == "error: job default/job-1 has no pods now; it is Pending\n"
    assert (partly.exit_code, partly.stdout) == (1, "[job-1-w-0] a\n")
    assert partly.stderr == "error: job-1-w-1: pod job-1-w-1 waits to start\n"


@pytest.mark.parametrize(
    ("word", "action"),
    [("suspend", "AbortJob"), ("resume", "ResumeJob"), ("restart", "RestartJob")],
)
def test_commands_are_sent_as_volcanos_actions(
    address: str, served: Controller, client: Client, word: str, action: str
) -> None:
    submit(served, client)

    result = run(address, "job", word, "job-1")

    assert result.stdout == f"job.batch.volcano.sh/job-1 {word} requested\n"
    assert served.requests[-1] == action


def test_queues_are_made_and_shown(address: str, served: Controller) -> None:
    made = run(address, "queue", "create", "q", "-w", "4", "--capability", "cpu=2,memory=1Gi")
    again = run(address, "queue", "create", "q")

    assert made.stdout == "queue.scheduling.volcano.sh/q created\n"
    assert (again.exit_code, again.stderr) == (1, "error: queue q exists\n")
    shown = json.loads(run(address, "queue", "get", "q", "-o", "json").stdout)
    assert shown["spec"]["weight"] == 4
    assert shown["spec"]["capability"] == {"cpu": "2", "memory": "1Gi"}


def test_many_jobs_are_made_in_chunks_of_a_thousand(served: Controller, client: Client) -> None:
    template = decode(job("many"))
    assert isinstance(template, Job)

    uids = client.jobs.create_many(template, (str(number) for number in range(2001)))

    assert len(set(uids)) == 2001
    assert len(served.requests) == 3


def test_attempts_are_listed_without_a_namespace_column(
    address: str, served: Controller
) -> None:
    served.add_pod("job-1", "w", 7)

    header, row = run(address, "job", "attempts", "job-1").stdout.splitlines()

    assert header.split()[:4] == ["TASK", "INDEX", "RUN", "POD"]
    assert row.split()[:4] == ["w", "7", "0", "job-1-w-7"]


def test_errors_are_the_domains(served: Controller, client: Client) -> None:
    submit(served, client)

    with pytest.raises(AlreadyExistsError):
        submit(served, client)
    with pytest.raises(NotFoundError):
        client.jobs.get("default", "nothing")


def test_a_call_is_tried_again_with_the_same_request_id_while_the_service_is_away(
    tmp_path: Path,
) -> None:
    served, listen = Controller(), f"unix:{tmp_path}/s"
    made: list[Job] = []
    with Client(addresses={"controller": listen}, patience=timedelta(seconds=20)) as client:
        thread = threading.Thread(target=lambda: made.append(submit(served, client)))
        thread.start()
        with controller_at(listen, served):
            thread.join(30)

    assert [one.metadata.name for one in made] == ["job-1"]
    assert len(set(served.requests)) == 1


def test_a_watch_ends_when_the_client_hangs_up(address: str, served: Controller) -> None:
    client = Client(addresses={"controller": address})
    seen: list[str] = []

    def watch() -> None:
        seen.extend(change.cursor for change in client.jobs.watch("default"))
        seen.append("end")

    thread = threading.Thread(target=watch)
    thread.start()
    submit(served, client)
    wait_until(lambda: seen, what="the first change")
    client.close()
    thread.join(10)

    assert seen == ["1", "end"]
    with pytest.raises(UnavailableError, match="is closed"):
        client.jobs.get("default", "job-1")


def test_a_service_that_stays_away_is_named(tmp_path: Path) -> None:
    listen = f"unix:{tmp_path}/nobody"
    with (
        Client(addresses={"controller": listen}, patience=timedelta()) as client,
        pytest.raises(UnavailableError, match=f"the controller at {listen} cannot be reached"),
    ):
        client.jobs.list()

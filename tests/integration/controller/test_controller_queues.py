"""QueueService: what a queue may be, become and be told of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from hekla.api.convert import to_message
from hekla.api.queue import Queue
from hekla.domain.phases import PodGroupPhase
from hekla.v1 import queue_pb2, queue_service_pb2 as messages
from tests.support.controller_scene import SOON, Driver, Scene, refused, until
from tests.support.objects import make_job, make_queue
from tests.support.waiting import wait_until

Code = grpc.StatusCode


def message(queue: Queue) -> queue_pb2.Queue:
    return to_message(queue, queue_pb2.Queue)


def create(
    served: Scene, name: str = "q", request_id: str = "", **spec: Any
) -> queue_pb2.Queue:
    request = messages.CreateQueueRequest(
        queue=message(make_queue(name, state=None, **spec)), request_id=request_id
    )
    return served.queues.CreateQueue(request, timeout=SOON).queue


def get(served: Scene, name: str = "q") -> queue_pb2.Queue:
    return served.queues.GetQueue(messages.GetQueueRequest(name=name), timeout=SOON).queue


def command(served: Scene, name: str, action: str, request_id: str = "") -> str:
    request = messages.CommandQueueRequest(name=name, action=action, request_id=request_id)
    return served.queues.CommandQueue(request, timeout=SOON).queue.status.state


def delete(served: Scene, name: str, request_id: str = "") -> None:
    request = messages.DeleteQueueRequest(name=name, request_id=request_id)
    served.queues.DeleteQueue(request, timeout=SOON)


def update(
    served: Scene,
    name: str = "q",
    *,
    generation: int | None = None,
    request_id: str = "",
    **spec: Any,
) -> queue_pb2.Queue:
    request = messages.UpdateQueueRequest(
        queue=message(make_queue(name, state=None, **spec)), request_id=request_id
    )
    if generation is not None:
        request.expected_generation = generation
    return served.queues.UpdateQueue(request, timeout=SOON).queue


def listed(served: Scene, token: str = "", **asked: Any) -> list[list[str]]:
    """Names, a page at a time."""
    found = []
    while True:
        request = messages.ListQueuesRequest(page_token=token, **asked)
        answer = served.queues.ListQueues(request, timeout=SOON)
        found.append([queue.metadata.name for queue in answer.queues])
        token = answer.next_page_token
        if not token:
            return found


# Making and changing.


def test_a_queue_is_open_once_it_is_made(served: Scene) -> None:
    made = create(served, weight=3)

    assert (made.spec.weight, made.spec.reclaimable) == (3, True)
    assert made.metadata.generation == 1
    assert get(served).status.state == "Open"
    assert get(served).metadata.uid == made.metadata.uid


def test_a_queue_that_makes_no_sense_is_refused(served: Scene) -> None:
    with refused(Code.INVALID_ARGUMENT, "spec.weight"):
        create(served, weight=-1)
    with refused(Code.INVALID_ARGUMENT, "spec.parent"):
        create(served, parent="nobody")
    with refused(Code.INVALID_ARGUMENT, "metadata.name"):
        create(served, "")
    with refused(Code.INVALID_ARGUMENT, "queue: is required"):
        served.queues.CreateQueue(messages.CreateQueueRequest(), timeout=SOON)

    assert listed(served) == [["default", "root"]]


def test_a_queues_name_may_be_made_for_it(served: Scene) -> None:
    queue = message(make_queue("", state=None))
    queue.metadata.generate_name = "team-"

    made = served.queues.CreateQueue(messages.CreateQueueRequest(queue=queue), timeout=SOON)

    assert made.queue.metadata.name.startswith("team-")
    assert get(served, made.queue.metadata.name).metadata.uid == made.queue.metadata.uid


def test_the_same_request_makes_one_queue(served: Scene) -> None:
    with ThreadPoolExecutor(8) as many:
        calls = [many.submit(create, served, "q", "once") for _ in range(8)]
        uids = {call.result().metadata.uid for call in calls}

    assert len(uids) == 1
    with refused(Code.INVALID_ARGUMENT, "'once'"):
        create(served, "other", "once")
    with refused(Code.ALREADY_EXISTS, "queue q"):
        create(served, "q", "another")


def test_a_queue_is_changed_as_it_was_read(served: Scene) -> None:
    create(served)

    changed = update(served, weight=5, generation=1)

    assert (changed.spec.weight, changed.metadata.generation) == (5, 2)
    with refused(Code.ABORTED, "generation 2", "not 1"):
        update(served, weight=6, generation=1)
    with refused(Code.INVALID_ARGUMENT, "spec.weight"):
        update(served, weight=-6)
    with refused(Code.NOT_FOUND, "queue other"):
        update(served, "other")
    with refused(Code.INVALID_ARGUMENT, "metadata.name"):
        update(served, "")
    assert get(served).spec.weight == 5


def test_the_same_change_is_made_once(served: Scene) -> None:
    create(served)
    update(served, weight=5, generation=1, request_id="once")

    again = update(served, weight=5, generation=1, request_id="once")

    assert again.metadata.generation == 2


def test_a_change_keeps_the_state(served: Scene) -> None:
    create(served)
    command(served, "q", "CloseQueue")

    assert update(served, weight=5).status.state == "Closed"


def test_queues_come_in_pages_by_name(served: Scene) -> None:
    for name in ("a", "b", "c"):
        create(served, name)

    assert listed(served, page_size=2) == [["a", "b"], ["c", "default"], ["root"]]
    assert listed(served, page_size=5) == [["a", "b", "c", "default", "root"]]


def test_queues_are_chosen_by_label(served: Scene) -> None:
    queue = message(make_queue("q", state=None))
    queue.metadata.labels["team"] = "red"
    served.queues.CreateQueue(messages.CreateQueueRequest(queue=queue), timeout=SOON)

    assert listed(served, label_selector="team=red") == [["q"]]
    assert listed(served, label_selector="!team") == [["default", "root"]]


@pytest.mark.parametrize(
    "asked",
    [
        {"page_size": -1},
        {"token": "ä"},
        {"token": "a"},
        {"token": "AA=="},
        {"label_selector": "a in ("},
    ],
)
def test_a_list_of_queues_that_makes_no_sense_is_refused(
    served: Scene, asked: dict[str, Any]
) -> None:
    with refused(Code.INVALID_ARGUMENT):
        listed(served, **asked)


# Deleting.


@pytest.mark.parametrize("name", ["root", "default"])
def test_some_queues_are_always_there_and_open(served: Scene, name: str) -> None:
    with refused(Code.INVALID_ARGUMENT, name):
        delete(served, name)
    with refused(Code.FAILED_PRECONDITION, "always open"):
        command(served, name, "CloseQueue")

    assert get(served, name).status.state == "Open"


def test_a_queue_that_is_used_stays(served: Scene, driver: Driver) -> None:
    create(served)
    create(served, "parent")
    create(served, "child", parent="parent")
    made = served.create(make_job("j", queue="q"))

    with refused(Code.FAILED_PRECONDITION, "jobs"):
        delete(served, "q")
    with refused(Code.INVALID_ARGUMENT, "child"):
        delete(served, "parent")
    served.delete(made)
    driver.look(made.metadata.uid)
    delete(served, "q")
    delete(served, "child")
    delete(served, "parent")
    assert listed(served) == [["default", "root"]]


def test_deleting_a_queue_again_finds_none_but_for_the_same_request(served: Scene) -> None:
    create(served)
    delete(served, "q", "once")

    delete(served, "q", "once")
    with refused(Code.NOT_FOUND, "queue q"):
        delete(served, "q")
    create(served)
    delete(served, "q", "once")
    assert get(served).metadata.name == "q", "the new one stays"


# Opening and closing.


def test_a_queue_closes_when_its_last_job_is_over_and_opens_again(
    served: Scene, driver: Driver
) -> None:
    create(served)
    made = served.create(make_job("j", queue="q"))
    uid = made.metadata.uid
    driver.start(uid)

    assert command(served, "q", "CloseQueue") == "Closing"
    with refused(Code.FAILED_PRECONDITION, "spec.queue"):
        served.create(make_job("late", queue="q"))
    served.queue_calls.settle_once()
    assert get(served).status.state == "Closing"
    driver.end(uid)
    driver.look(uid)
    served.queue_calls.settle_once()
    assert get(served).status.state == "Closed"

    assert command(served, "q", "OpenQueue") == "Open"
    served.create(make_job("late", queue="q"))


def test_an_empty_queue_is_closed_at_once(served: Scene) -> None:
    create(served)

    assert command(served, "q", "CloseQueue") == "Closed"
    assert command(served, "q", "CloseQueue") == "Closed"


def test_a_queue_opens_only_below_an_open_one(served: Scene) -> None:
    create(served, "parent")
    create(served, "child", parent="parent")
    command(served, "child", "CloseQueue")
    command(served, "parent", "CloseQueue")

    with refused(Code.FAILED_PRECONDITION, "parent", "Closed"):
        command(served, "child", "OpenQueue")
    command(served, "parent", "OpenQueue")
    assert command(served, "child", "OpenQueue") == "Open"


def test_the_same_command_is_carried_out_once(served: Scene) -> None:
    create(served)
    command(served, "q", "CloseQueue", "once")
    command(served, "q", "OpenQueue")

    assert command(served, "q", "CloseQueue", "once") == "Open"


@pytest.mark.parametrize("action", ["", "openqueue", "AbortJob", "OpenQueue\0"])
def test_a_command_that_is_none_is_refused(served: Scene, action: str) -> None:
    with refused(Code.INVALID_ARGUMENT, "must be one of OpenQueue, CloseQueue"):
        command(served, "root", action)


def test_a_queue_that_never_was_is_not_found(served: Scene) -> None:
    with refused(Code.NOT_FOUND, "queue q"):
        get(served)
    with refused(Code.NOT_FOUND, "queue q"):
        delete(served, "q")
    with refused(Code.NOT_FOUND, "queue q"):
        command(served, "q", "CloseQueue")
    for name in ("", "q\0"):
        with refused(Code.INVALID_ARGUMENT, "name"):
            get(served, name)


# What is shown.


def test_counts_are_of_pod_groups_and_soon_those_of_now(served: Scene, driver: Driver) -> None:
    create(served)
    uids = [served.create(make_job(f"j{n}", queue="q")).metadata.uid for n in range(3)]
    driver.look(*uids)
    driver.admit(uids[0], PodGroupPhase.RUNNING)
    driver.admit(uids[1], PodGroupPhase.INQUEUE)

    def counts() -> tuple[int, int, int]:
        status = get(served).status
        return status.pending, status.inqueue, status.running

    wait_until(lambda: counts() == (1, 1, 1), what="the counts")
    answer = served.queues.ListQueues(messages.ListQueuesRequest(), timeout=SOON)
    [queue] = [queue for queue in answer.queues if queue.metadata.name == "q"]
    assert (queue.status.pending, queue.status.inqueue, queue.status.running) == (1, 1, 1)


def test_a_watch_tells_what_becomes_of_queues(served: Scene) -> None:
    request = messages.WatchQueuesRequest(name="q")
    stream = served.queues.WatchQueues(request, timeout=SOON)
    until(stream, lambda one: one.type == "BOOKMARK")

    create(served)
    until(stream, lambda one: one.queue.metadata.name == "q" and one.type == "ADDED")
    command(served, "q", "CloseQueue")
    until(stream, lambda one: one.queue.status.state == "Closed")
    create(served, "other")
    delete(served, "q")

    [*_, last] = until(stream, lambda one: one.type == "DELETED")
    assert last.queue.metadata.name == "q"
    assert last.queue.status.state == "Closed"
    stream.cancel()


def test_a_watch_of_queues_goes_on_from_a_list(served: Scene) -> None:
    cursor = served.queues.ListQueues(messages.ListQueuesRequest(), timeout=SOON).cursor
    create(served)

    stream = served.queues.WatchQueues(messages.WatchQueuesRequest(cursor=cursor), timeout=SOON)

    seen = until(stream, lambda one: one.type == "BOOKMARK")[:-1]
    assert [(one.type, one.queue.metadata.name) for one in seen] == [("ADDED", "q")]
    with refused(Code.OUT_OF_RANGE):
        list(served.queues.WatchQueues(messages.WatchQueuesRequest(cursor="x"), timeout=SOON))


def states(served: Scene, *queues: str) -> dict[str, str]:
    return {name: get(served, name).status.state for name in queues}


def test_queues_close_and_open_with_their_parent_but_for_those_closed_by_themselves(
    served: Scene,
) -> None:
    create(served, "top")
    create(served, "a", parent="top")
    create(served, "b", parent="top")
    create(served, "leaf", parent="a")
    command(served, "b", "CloseQueue")

    assert command(served, "top", "CloseQueue") == "Closed"

    assert set(states(served, "top", "a", "b", "leaf").values()) == {"Closed"}
    mark = "volcano.sh/closed-by-parent"
    assert get(served, "leaf").metadata.annotations[mark] == "true"
    assert mark not in get(served, "b").metadata.annotations
    with refused(Code.FAILED_PRECONDITION, "its parent a is Closed"):
        command(served, "leaf", "OpenQueue")

    assert command(served, "top", "OpenQueue") == "Open"

    expected = {"top": "Open", "a": "Open", "b": "Closed", "leaf": "Open"}
    assert states(served, *expected) == expected
    assert get(served, "leaf").metadata.annotations[mark] == "false"


def test_a_queue_below_a_closed_one_is_closed_with_it(served: Scene) -> None:
    create(served, "top")
    command(served, "top", "CloseQueue")

    create(served, "new", parent="top")

    assert states(served, "new") == {"new": "Closed"}
    command(served, "top", "OpenQueue")
    assert states(served, "new") == {"new": "Open"}


def test_queues_are_chosen_by_state_and_parent(served: Scene) -> None:
    create(served, "top")
    create(served, "a", parent="top")
    create(served, "b", parent="top")
    command(served, "b", "CloseQueue")

    assert listed(served, parent="top") == [["a", "b"]]
    assert listed(served, parent="top", states=["Closed"]) == [["b"]]
    with refused(Code.INVALID_ARGUMENT, "states: must be of "):
        listed(served, states=["Shut"])

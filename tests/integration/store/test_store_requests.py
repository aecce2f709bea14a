"""A call that is repeated is answered again and does nothing."""

from __future__ import annotations

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import text

from hekla.domain.errors import InvalidError
from hekla.store import requests
from hekla.store.database import Database
from hekla.store.requests import Answered, RequestKey
from tests.support.store import MINUTE, wait_for_waiting

KEY = RequestKey("alice", "CreateJob", "1")


def test_a_repeated_call_is_answered_from_what_was_noted(database: Database) -> None:
    uids = [uuid4(), uuid4()]
    with database.transaction() as session:
        assert requests.find(session, KEY, b"body") is None
        assert requests.record(session, KEY, b"body", uids=uids, warnings=["w"])

    with database.transaction() as session:
        assert requests.find(session, KEY, b"body") == Answered(uids, ["w"])


@pytest.mark.parametrize(
    "other",
    [
        KEY._replace(caller="bob"),
        KEY._replace(method="DeleteJob"),
        KEY._replace(id="2"),
    ],
)
def test_calls_of_others_are_other_calls(database: Database, other: RequestKey) -> None:
    with database.transaction() as session:
        requests.record(session, KEY, b"body", uids=[])

        assert requests.find(session, other, b"another") is None


def test_one_id_for_two_bodies_is_refused(database: Database) -> None:
    with database.transaction() as session:
        requests.record(session, KEY, b"body", uids=[])

        with pytest.raises(InvalidError, match="'1' was used for another CreateJob"):
            requests.find(session, KEY, b"another")


def test_a_call_without_an_id_is_always_new(database: Database) -> None:
    key = KEY._replace(id="")
    with database.transaction() as session:
        assert requests.record(session, key, b"body", uids=[uuid4()])
        assert requests.record(session, key, b"body", uids=[uuid4()])
        assert requests.find(session, key, b"another") is None


def test_of_twins_at_the_same_time_one_does_it(database: Database) -> None:
    uid = uuid4()
    second: list[bool] = []

    def repeat() -> None:
        with database.transaction() as session:
            second.append(requests.record(session, KEY, b"body", uids=[uuid4()]))

    with database.transaction() as session:
        assert requests.record(session, KEY, b"body", uids=[uid])
        twin = threading.Thread(target=repeat)
        twin.start()
        wait_for_waiting(database)
    twin.join()

    assert second == [False]
    with database.transaction() as session:
        found = requests.find(session, KEY, b"body")
    assert found is not None
    assert found.uids == [uid]


def test_a_twin_of_a_call_that_failed_does_it(database: Database) -> None:
    second: list[bool] = []

    def repeat() -> None:
        with database.transaction() as session:
            second.append(requests.record(session, KEY, b"body", uids=[]))

    def fail() -> threading.Thread:
        with database.transaction() as session:
            requests.record(session, KEY, b"body", uids=[])
            twin = threading.Thread(target=repeat)
            twin.start()
            wait_for_waiting(database)
            raise KeyError(twin)

    with pytest.raises(KeyError) as failed:
        fail()
    failed.value.args[0].join()

    assert second == [True]


def test_a_restored_store_does_not_answer_for_calls_it_may_not_have_done(
    database: Database,
) -> None:
    uid = uuid4()
    with database.transaction() as session:
        requests.record(session, KEY, b"body", uids=[uuid4()])
        session.execute(text("update store set incarnation = gen_random_uuid()"))

    with database.transaction() as session:
        assert requests.find(session, KEY, b"another") is None
        assert requests.record(session, KEY, b"another", uids=[uid])
        assert not requests.record(session, KEY, b"another", uids=[uuid4()])
        assert requests.find(session, KEY, b"another") == Answered([uid], [])


def test_old_calls_are_forgotten(database: Database) -> None:
    with database.transaction() as session:
        for number in range(3):
            requests.record(session, KEY._replace(id=f"{number}"), b"", uids=[])

        assert requests.prune(session, older_than=MINUTE) == 0
        assert requests.prune(session, older_than=timedelta(seconds=-1), limit=2) == 2
        assert requests.prune(session, older_than=timedelta(seconds=-1)) == 1
        assert requests.find(session, KEY, b"") is None

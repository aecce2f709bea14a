"""A controller whose own clock is wrong: nothing is decided by it, only by that of Postgres."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

import pytest

from hekla.domain import timestamps
from hekla.domain.phases import JobPhase
from hekla.store.database import now
from tests.support.controller_scene import Driver, Scene
from tests.support.objects import make_job, make_task


@pytest.mark.parametrize("days", [1, -1])
def test_a_controller_whose_clock_was_stepped_decides_by_postgres(
    served: Scene, driver: Driver, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    class Stepped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Stepped:
            there = datetime.now(tz) + timedelta(days=days)
            return cls.fromtimestamp(there.timestamp(), tz)

    for module in ("passes", "acting"):
        monkeypatch.setattr(f"services.controller.{module}.datetime", Stepped)
    job = make_job("j", make_task("t", 1), ttl_seconds_after_finished=3600)
    uid = served.create(job).metadata.uid

    driver.start(uid)
    driver.end(uid)

    found = driver.job(uid)
    with driver.database.transaction() as session:
        today = now(session)
    assert driver.phase(uid) is JobPhase.COMPLETED
    assert found.deleting_at is None, "an hour is not over"
    for said in found.job.status.conditions or ():
        at = timestamps.from_text(said.last_transition_time or "")
        assert abs(today - at) < timedelta(minutes=1)
    assert found.started_at is not None
    assert abs(today - found.started_at) < timedelta(minutes=1)

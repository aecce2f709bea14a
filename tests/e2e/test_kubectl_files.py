"""A whole file by ``kubectl apply``, again and again; ``make soak`` does it a hundred times."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.support import teams
from tests.support.kubectl import Kubectl

ROUNDS = 10
AT_ONCE = 3


def test_queue_priority_templates_flow_and_job_of_one_file_go_well_ten_times(
    kubectl: Kubectl,
) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        names = [f"crew{number}" for number in range(ROUNDS)]
        took = list(threads.map(lambda name: teams.play(kubectl, name), names))

    assert len(took) == ROUNDS

"""The Python SDK: thin over the RPCs, in the same words, blocking.

``with Client() as client: client.jobs.get("default", "job-1")``. Objects are the models of
``hekla.api``; errors are those of ``hekla.domain.errors``.
"""

from __future__ import annotations

from hekla.client.client import Client
from hekla.client.follow import Sighting
from hekla.client.records import Admitted, Attempt, Change, JobEvent, Listing, PodView
from hekla.client.simple import simple_job

__all__ = [
    "Admitted",
    "Attempt",
    "Change",
    "Client",
    "JobEvent",
    "Listing",
    "PodView",
    "Sighting",
    "simple_job",
]

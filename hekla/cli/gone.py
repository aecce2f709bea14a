"""Deleting a job or a flow, and waiting until it is gone: what it made is by then."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from hekla.api.job import Job
from hekla.api.job_flow import JobFlow
from hekla.cli.progress import Progress
from hekla.client import Client
from hekla.client.follow import follow, followed
from hekla.domain import duration, names
from hekla.domain.errors import TimedOutError


class Going(Protocol):
    """A removal that was asked for."""

    def wait(self, client: Client, timeout: timedelta | None) -> None:
        """Return once it is done.

        Raises:
            TimedOutError: it is not within ``timeout``.
        """
        ...


@dataclass(frozen=True, slots=True)
class FlowRemoval:
    """The removal of a flow."""

    flow: JobFlow
    cursor: str

    def wait(self, client: Client, timeout: timedelta | None) -> None:
        """Return once the flow is gone, and its jobs.

        Raises:
            TimedOutError: it is not within ``timeout``.
        """
        metadata = self.flow.metadata
        name = metadata.name
        with Progress() as progress:
            progress.tell(f"{name}: deleting")
            for _flow, gone in followed(
                client.job_flows,
                self.flow,
                cursor=self.cursor,
                timeout=timeout,
                on_outage=lambda error: progress.tell(f"{name}: {error}; trying again"),
            ):
                if gone:
                    return
        key = names.Key(metadata.namespace, name)
        span = duration.format(timeout or timedelta())
        raise TimedOutError(f"job flow {key} is not gone after {span}; its removal goes on")


@dataclass(frozen=True, slots=True)
class Removal:
    """The removal of a job."""

    job: Job
    cursor: str

    def wait(self, client: Client, timeout: timedelta | None) -> None:
        """Return once the job is gone.

        Raises:
            TimedOutError: it is not within ``timeout``.
        """
        name = self.job.metadata.name
        with Progress() as progress:
            progress.tell(f"{name}: deleting")
            for sighting in follow(
                client.jobs,
                self.job,
                cursor=self.cursor,
                timeout=timeout,
                on_outage=lambda error: progress.tell(f"{name}: {error}; trying again"),
            ):
                if sighting.gone:
                    return
                left = sum(_alive(sighting.job))
                progress.tell(f"{name}: deleting" + (f" ({left} pods left)" if left else ""))
        key = names.Key(self.job.metadata.namespace, name)
        span = duration.format(timeout or timedelta())
        raise TimedOutError(f"job {key} is not gone after {span}; its removal goes on")


def _alive(job: Job) -> tuple[int, ...]:
    status = job.status
    return (status.pending, status.running, status.terminating, status.unknown)


def delete(client: Client, namespace: str, name: str) -> Removal:
    """Ask for a job's removal."""
    cursor = client.jobs.cursor(namespace)
    return Removal(client.jobs.delete(namespace, name), cursor)


def delete_flow(client: Client, namespace: str, name: str) -> FlowRemoval:
    """Ask for a flow's removal."""
    cursor = client.job_flows.cursor(namespace)
    return FlowRemoval(client.job_flows.delete(namespace, name), cursor)

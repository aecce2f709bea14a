"""What the shell offers for names: those there are. Silence when nobody answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Final

import click
from click.shell_completion import CompletionItem

from hekla.client import Client
from hekla.domain.errors import DomainError

Completing = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

PATIENCE: Final = timedelta(seconds=1)
"""A shell that waits longer seems broken."""
MOST: Final = 500
"""Objects that are looked at."""


def jobs(
    context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Names of jobs in the namespace that the line names."""
    namespace = context.params.get("namespace") or "default"

    def found(client: Client) -> Iterable[tuple[str, str]]:
        for job in client.jobs.list(namespace, limit=MOST).items:
            yield job.metadata.name, job.status.state.phase or ""

    return _offered(context, found, begun)


def queues(
    context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Names of queues."""

    def found(client: Client) -> Iterable[tuple[str, str]]:
        for queue in client.queues.list(limit=MOST).items:
            yield queue.metadata.name, queue.status.state or ""

    return _offered(context, found, begun)


def job_flows(
    context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Names of flows in the namespace that the line names."""
    namespace = context.params.get("namespace") or "default"

    def found(client: Client) -> Iterable[tuple[str, str]]:
        for flow in client.job_flows.list(namespace, limit=MOST).items:
            yield flow.metadata.name, flow.status.state.phase or ""

    return _offered(context, found, begun)


def job_templates(
    context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Names of templates in the namespace that the line names."""
    namespace = context.params.get("namespace") or "default"

    def found(client: Client) -> Iterable[tuple[str, str]]:
        for template in client.job_templates.list(namespace, limit=MOST).items:
            yield template.metadata.name, template.spec.queue

    return _offered(context, found, begun)


def pod_groups(
    context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Names of pod groups in the namespace that the line names."""
    namespace = context.params.get("namespace") or "default"

    def found(client: Client) -> Iterable[tuple[str, str]]:
        for group in client.pod_groups.list(namespace, limit=MOST).items:
            yield group.metadata.name, group.status.phase or ""

    return _offered(context, found, begun)


def namespaces(
    context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Namespaces that have jobs."""

    def found(client: Client) -> Iterable[tuple[str, str]]:
        names = {job.metadata.namespace for job in client.jobs.list(limit=MOST).items}
        return [(name, "") for name in sorted(names)]

    return _offered(context, found, begun)


def _offered(
    context: click.Context,
    look: Callable[[Client], Iterable[tuple[str, str]]],
    begun: str,
) -> list[CompletionItem]:
    environ: Mapping[str, str] = context.find_root().obj or os.environ
    try:
        with Client(environ=environ, timeout=PATIENCE, patience=timedelta()) as client:
            return [
                CompletionItem(name, help=about or None)
                for name, about in look(client)
                if name.startswith(begun)
            ]
    except DomainError:
        return []

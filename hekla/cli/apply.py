"""``hekla apply`` and ``hekla delete``: manifests in, manifests out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final, TypeVar

import click

from hekla.api.decode import encode
from hekla.api.fields import Model
from hekla.api.job import Job
from hekla.api.job_flow import JobFlow
from hekla.api.job_template import JobTemplate
from hekla.api.meta import ObjectMeta
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue, QueueSpec
from hekla.cli import gone, manifest, options, output
from hekla.cli.errors import explained
from hekla.cli.gone import Going
from hekla.cli.manifest import Applied, Item
from hekla.client import Admitted, Client
from hekla.domain.errors import (
    AlreadyExistsError,
    DomainError,
    InvalidError,
    NotFoundError,
    PreconditionError,
)

M = TypeVar("M", bound=Model)

_USERS: Final = ("labels", "annotations")
"""Metadata that belongs to users."""
RACES: Final = 3
"""How often an object may come and go between two calls before we give up."""


@click.command(
    epilog=options.examples(
        "hekla apply -f examples/job.yaml", "cat job.yaml | hekla apply -n team-a -f -"
    )
)
@options.files
@options.manifest_namespace
@options.with_client
def apply(client: Client, *, files: Sequence[str], namespace: str | None) -> None:
    """Create or change the objects of a manifest.

    Every document is checked before the first is sent. Queues are sent first, then pod groups,
    templates, jobs and flows.
    """
    send(client, manifest.read(files, namespace))


def send(client: Client, items: Sequence[Item]) -> None:
    """Create or change objects in the order in which they need each other, and say so."""
    ordered = sorted(items, key=lambda item: _rank(item.object))
    for number, item in enumerate(ordered):
        try:
            result, warnings = _applied(client, item)
        except DomainError as error:
            left = len(ordered) - number - 1
            more = f" ({left} more not sent)" if left else ""
            text = f"{item.where}: {item.name}: {explained(error)}{more}"
            raise click.ClickException(text) from error
        output.warnings(warnings, f"{item.name}: ")
        click.echo(result)


_ORDER: Final = (Queue, PodGroup, JobTemplate, Job, JobFlow)
"""What others need comes first."""


def _rank(found: Applied) -> int:
    return _ORDER.index(type(found))


def _applied(client: Client, item: Item) -> tuple[str, Sequence[str]]:
    """Create or change one object; say what became of it."""
    found = item.object
    for _ in range(RACES):
        try:
            made = _create(client, found)
        except AlreadyExistsError:
            pass
        else:
            kind = item.name.partition("/")[0]
            return f"{kind}/{made.object.metadata.name} created", made.warnings
        try:
            before, changed = _update(client, found)
        except NotFoundError:
            continue  # it was deleted meanwhile
        word = "unchanged" if _same(before.metadata, changed.object.metadata) else "configured"
        return f"{item.name} {word}", changed.warnings
    raise PreconditionError("somebody else creates and deletes it at the same time; try again")


def _create(client: Client, found: Applied) -> Admitted[Applied]:
    match found:
        case Job():
            return client.jobs.create(found)
        case Queue():
            return client.queues.create(found)
        case PodGroup():
            return Admitted(client.pod_groups.create(found))
        case JobTemplate():
            return client.job_templates.create(found)
        case JobFlow():
            return client.job_flows.create(found)


def _update(client: Client, found: Applied) -> tuple[Applied, Admitted[Applied]]:
    metadata = found.metadata
    match found:
        case Job():
            job = client.jobs.get(metadata.namespace, metadata.name)
            wanted = _keeping(metadata, job.metadata, _USERS)
            return job, client.jobs.update(found.model_copy(update={"metadata": wanted}))
        case Queue():
            queue = client.queues.get(metadata.name)
            changed = {
                "metadata": _keeping(metadata, queue.metadata, _USERS),
                # Admission gives a queue its parent and the like once, when it is created.
                "spec": _keeping(found.spec, queue.spec, QueueSpec.model_fields),
            }
            return queue, client.queues.update(found.model_copy(update=changed))
        case JobTemplate():
            template = client.job_templates.get(metadata.namespace, metadata.name)
            wanted = _keeping(metadata, template.metadata, _USERS)
            given = found.model_copy(update={"metadata": wanted})
            return template, client.job_templates.update(given)
        case JobFlow():
            flow = client.job_flows.get(metadata.namespace, metadata.name)
            wanted = _keeping(metadata, flow.metadata, _USERS)
            return flow, client.job_flows.update(found.model_copy(update={"metadata": wanted}))
        case PodGroup():
            group = client.pod_groups.get(metadata.namespace, metadata.name)
            if encode(group.spec) != encode(found.spec):
                raise PreconditionError("a pod group cannot be changed; delete it first")
            return group, Admitted(group)


def _keeping(given: M, before: M, fields: Iterable[str]) -> M:
    """``given``, with those of ``fields`` that it leaves open as they were before."""
    left_open = [name for name in fields if getattr(given, name) is None]
    return given.model_copy(update={name: getattr(before, name) for name in left_open})


def _same(before: ObjectMeta, after: ObjectMeta) -> bool:
    return (before.generation, before.labels, before.annotations) == (
        after.generation,
        after.labels,
        after.annotations,
    )


@click.command(
    epilog=options.examples(
        "hekla delete -f examples/job.yaml",
        "hekla delete -f job.yaml --ignore-not-found --wait=false",
    )
)
@options.files
@options.manifest_namespace
@click.option("--ignore-not-found", is_flag=True, help="What is not there is no error.")
@options.wait
@options.timeout()
@options.with_client
def delete(
    client: Client,
    *,
    files: Sequence[str],
    namespace: str | None,
    ignore_not_found: bool,
    wait: bool,
    timeout: timedelta | None,
) -> None:
    """Delete the objects of a manifest.

    Flows go first, then jobs, templates, pod groups and queues.
    """
    items = manifest.read(files, namespace)
    if nameless := next((item for item in items if not item.object.metadata.name), None):
        raise InvalidError(f"{nameless.where}: metadata.name: is required")
    waiting: list[tuple[Item, Going]] = []
    failures = 0
    # The order of apply, backwards: among queues a parent goes after its children.
    order = sorted(range(len(items)), key=lambda at: (_rank(items[at].object), at))
    for item in (items[at] for at in reversed(order)):
        if isinstance(item.object, Queue):
            failures += _finished(client, waiting, timeout)  # it can go once its jobs are gone
        try:
            removal = _delete(client, item.object)
        except NotFoundError as error:
            failures += 0 if ignore_not_found else _failed(item, error)
        except DomainError as error:
            failures += _failed(item, error)
        else:
            if removal is not None and wait:
                waiting.append((item, removal))
            else:
                click.echo(f"{item.name} deleted")
    failures += _finished(client, waiting, timeout)
    if failures:
        raise click.exceptions.Exit(1)


def _finished(
    client: Client, waiting: list[tuple[Item, Going]], timeout: timedelta | None
) -> int:
    """Wait for removals; give how many did not come to their end."""
    failures = 0
    while waiting:
        item, removal = waiting.pop(0)
        try:
            removal.wait(client, timeout)
        except DomainError as error:
            failures += _failed(item, error)
        else:
            click.echo(f"{item.name} deleted")
    return failures


def _failed(item: Item, error: DomainError) -> int:
    click.echo(f"error: {item.where}: {item.name}: {explained(error)}", err=True)
    return 1


def _delete(client: Client, found: Applied) -> Going | None:
    """Ask for one object's removal; that of a job or a flow takes time."""
    metadata = found.metadata
    match found:
        case Job():
            return gone.delete(client, metadata.namespace, metadata.name)
        case Queue():
            client.queues.delete(metadata.name)
        case PodGroup():
            client.pod_groups.delete(metadata.namespace, metadata.name)
        case JobTemplate():
            client.job_templates.delete(metadata.namespace, metadata.name)
        case JobFlow():
            return gone.delete_flow(client, metadata.namespace, metadata.name)
    return None

"""``hekla jobtemplate …``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from hekla.api.job_template import JobTemplate
from hekla.cli import kinds, manifest, options, output
from hekla.cli.output import Format
from hekla.client import Client
from hekla.domain.errors import InvalidError


@click.group(
    epilog=options.examples(
        "hekla jobtemplate create -f examples/ml-pipeline.yaml", "hekla jobtemplate list"
    )
)
def jobtemplate() -> None:
    """Job templates: specs of the jobs that flows make."""


@jobtemplate.command(
    "create", epilog=options.examples("hekla jobtemplate create -f examples/ml-pipeline.yaml")
)
@options.files
@options.manifest_namespace
@options.output
@options.with_client
def create(
    client: Client, *, files: Sequence[str], namespace: str | None, form: Format
) -> None:
    """Create the templates of a manifest; what else is in it is left alone."""
    items = [item.object for item in manifest.read(files, namespace)]
    wanted = [one for one in items if isinstance(one, JobTemplate)]
    if not wanted:
        raise InvalidError(f"{', '.join(files)}: has no JobTemplate in it")
    for template in wanted:
        admitted = client.job_templates.create(template)
        output.warnings(admitted.warnings, f"{template.metadata.name}: ")
        shown = kinds.job_template(admitted.object, datetime.now(UTC))
        output.created(kinds.JOB_TEMPLATES, shown, form)


@jobtemplate.command("list", epilog=options.examples("hekla jobtemplate list -A -o wide"))
@options.namespace
@options.everywhere
@options.selector
@options.output
@options.with_client
def list_templates(
    client: Client, *, namespace: str, everywhere: bool, selector: str, form: Format
) -> None:
    """List templates."""
    within = "" if everywhere else namespace
    found = client.job_templates.list(within, label_selector=selector).items
    now = datetime.now(UTC)
    shown = [kinds.job_template(one, now) for one in found]
    output.listing(kinds.JOB_TEMPLATES, shown, form, namespace=within, everywhere=everywhere)


@jobtemplate.command("get", epilog=options.examples("hekla jobtemplate get train -o yaml"))
@options.template_name
@options.namespace
@options.output
@options.with_client
def get(client: Client, *, name: str, namespace: str, form: Format) -> None:
    """Show a template."""
    found = client.job_templates.get(namespace, name)
    shown = kinds.job_template(found, datetime.now(UTC))
    output.single(kinds.JOB_TEMPLATES, shown, form)


@jobtemplate.command("delete", epilog=options.examples("hekla jobtemplate delete train"))
@options.template_name
@options.namespace
@options.with_client
def delete(client: Client, *, name: str, namespace: str) -> None:
    """Delete a template; jobs that were made from it stay."""
    client.job_templates.delete(namespace, name)
    click.echo(f"{kinds.JOB_TEMPLATES.resource}/{name} deleted")

"""Messages and models are the same objects in two languages."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given, settings

from hekla.api import convert, decode
from hekla.api.command import Command
from hekla.api.cron_job import CronJob
from hekla.api.fields import Model, alias
from hekla.api.hyper_node import HyperNode
from hekla.api.job import Job, TaskSpec, VolumeSpec
from hekla.api.job_flow import JobFlow, JobSpecPatch, TaskSpecPatch
from hekla.api.job_template import JobTemplate
from hekla.api.numatopology import Numatopology
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.domain.errors import InvalidError
from hekla.v1 import (
    command_pb2,
    cron_job_pb2,
    hyper_node_pb2,
    job_flow_pb2,
    job_pb2,
    job_template_pb2,
    meta_pb2,
    numatopology_pb2,
    pod_group_pb2,
    queue_pb2,
)
from tests.support.objects import make_job, make_task, models

PAIRS: list[tuple[type[Model], type[Message]]] = [
    (Job, job_pb2.Job),
    (PodGroup, pod_group_pb2.PodGroup),
    (Queue, queue_pb2.Queue),
    (JobFlow, job_flow_pb2.JobFlow),
    (JobTemplate, job_template_pb2.JobTemplate),
    (CronJob, cron_job_pb2.CronJob),
    (Command, command_pb2.Command),
    (HyperNode, hyper_node_pb2.HyperNode),
    (Numatopology, numatopology_pb2.Numatopology),
]
OBJECT_FILES = [
    command_pb2,
    cron_job_pb2,
    hyper_node_pb2,
    job_flow_pb2,
    job_pb2,
    job_template_pb2,
    meta_pb2,
    numatopology_pb2,
    pod_group_pb2,
    queue_pb2,
]
MESSAGES = {JobSpecPatch: "JobSpec", TaskSpecPatch: "TaskSpec"}
"""Models that share a message with another, which differs in its defaults only."""


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def part_of(hint: Any) -> type[Model] | None:
    if isinstance(hint, type) and issubclass(hint, Model):
        return hint
    parts = (part_of(inner) for inner in typing.get_args(hint))
    return next((part for part in parts if part is not None), None)


def container_of(hint: Any) -> type | None:
    kinds = [typing.get_origin(part) for part in (hint, *typing.get_args(hint))]
    return next((kind for kind in kinds if kind in (list, dict)), None)


def pairs(model: type[Model], message: Any) -> Iterator[tuple[type[Model], Any]]:
    """The model and the message, and those of all their parts."""
    yield model, message
    hints = typing.get_type_hints(model)
    for field in message.fields:
        part = part_of(hints.get(field.name))
        if part is not None and field.message_type is not None:
            inner = field.message_type
            value = inner.fields_by_name["value"].message_type if is_map(field) else inner
            assert value is not None
            yield from pairs(part, value)


ALL_PAIRS = dict.fromkeys(
    pair for model, message in PAIRS for pair in pairs(model, message.DESCRIPTOR)
)
EVERY_PART = pytest.mark.parametrize(
    ("model", "message"),
    [pytest.param(model, message, id=model.__name__) for model, message in ALL_PAIRS],
)


def test_every_kind_has_a_message() -> None:
    assert {model for model, _ in PAIRS} == set(decode.KINDS.values())


@EVERY_PART
def test_a_message_has_the_fields_of_its_model(model: type[Model], message: Descriptor) -> None:
    fields = {convert.AS_TEXT.get(field.name, field.name) for field in message.fields}

    assert fields == set(model.model_fields)


@EVERY_PART
def test_json_names_are_those_of_yaml(model: type[Model], message: Descriptor) -> None:
    names = {field.json_name for field in message.fields if field.name not in convert.AS_TEXT}
    aliases = {info.alias for info in model.model_fields.values()}

    assert names == aliases - {alias(name) for name in convert.AS_TEXT.values()}


@EVERY_PART
def test_lists_and_maps_are_so_on_both_sides(model: type[Model], message: Descriptor) -> None:
    hints = typing.get_type_hints(model)
    for field in message.fields:
        if field.name in convert.AS_TEXT:
            continue
        expected = dict if is_map(field) else list if field.is_repeated else None
        assert container_of(hints[field.name]) is expected, field.name


@EVERY_PART
def test_the_parts_of_a_message_are_the_parts_of_its_model(
    model: type[Model], message: Descriptor
) -> None:
    hints = typing.get_type_hints(model)
    for field in message.fields:
        inner = field.message_type
        if inner is None or field.name in convert.AS_TEXT:
            continue
        value = inner.fields_by_name["value"].message_type if is_map(field) else inner
        part = part_of(hints[field.name])
        if value is None or value.full_name == "google.protobuf.ListValue":
            assert part is None
        else:
            assert part is not None
            assert MESSAGES.get(part, part.__name__) == value.name


@EVERY_PART
def test_scalars_tell_zero_from_absent(model: type[Model], message: Descriptor) -> None:
    for field in message.fields:
        if not field.is_repeated:
            assert field.has_presence, field.full_name


def test_object_messages_have_no_number_that_json_would_make_a_text() -> None:
    wide = {
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_UINT64,
        FieldDescriptor.TYPE_SINT64,
        FieldDescriptor.TYPE_FIXED64,
        FieldDescriptor.TYPE_SFIXED64,
    }
    found = [
        field.full_name
        for file in OBJECT_FILES
        for message in file.DESCRIPTOR.message_types_by_name.values()
        for field in message.fields
        if field.type in wide
    ]

    assert found == []


@pytest.mark.parametrize(("model", "message"), PAIRS, ids=lambda value: value.__name__)
def test_every_object_survives_the_way_there_and_back(
    model: type[Model], message: type[Message]
) -> None:
    @settings(max_examples=25)
    @given(models(model))
    def check(value: Model) -> None:
        sent = message.FromString(convert.to_message(value, message).SerializeToString())

        assert convert.to_model(sent, model) == value

    check()


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {}, "annotations": {"ü": "☃ \U0001f680", "empty": ""}},
    "spec": {
        "containers": [{"name": "c", "ports": [{"containerPort": 2222, "hostPort": 0}]}],
        "hostNetwork": False,
        "terminationGracePeriodSeconds": 0,
        "activeDeadlineSeconds": 9007199254740993,
        "runAsUser": 2**63 - 1,
        "huge": 2**64 - 1,
        "nothing": None,
        "emptyDir": {},
        "list": [],
        "half": 0.5,
        "quantity": "0.1",
    },
}


def test_a_pod_template_arrives_as_it_was_sent() -> None:
    job = make_job("j", make_task(template=TEMPLATE))

    message = job_pb2.Job.FromString(convert.to_message(job, job_pb2.Job).SerializeToString())
    arrived = convert.to_model(message, Job).spec.tasks or []

    assert arrived[0].template == TEMPLATE
    # Equality does not tell 0 from False, nor 2222 from 2222.0.
    assert json.dumps(arrived[0].template) == json.dumps(TEMPLATE)


def test_an_empty_list_of_plugin_arguments_arrives() -> None:
    job = make_job(plugins={"svc": [], "mpi": ["--master=m", ""]})

    message = convert.to_message(job, job_pb2.Job)

    assert convert.to_model(message, Job).spec.plugins == {"svc": [], "mpi": ["--master=m", ""]}


@pytest.mark.parametrize("replicas", [0, 3])
def test_zero_is_not_absent(replicas: int) -> None:
    task = TaskSpec(name="t", replicas=replicas, min_available=0)

    message = convert.to_message(task, job_pb2.TaskSpec)

    assert message.HasField("replicas")
    assert convert.to_model(message, TaskSpec).min_available == 0
    assert convert.to_model(job_pb2.TaskSpec(), TaskSpec).min_available is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "5", '"x"', '{"a": NaN}', '{"a": 1e999}', '{"a": "\\u0000"}',
     '{"a": "\\ud800"}', '{"a": %s}' % ("9" * 5000), "[" * 100_000, '{"a": ' * 5000],
)  # fmt: skip
def test_text_that_is_no_template_is_refused_with_its_path(text: str) -> None:
    tasks = [job_pb2.TaskSpec(), job_pb2.TaskSpec(template_json=text)]
    message = job_pb2.Job(spec=job_pb2.JobSpec(tasks=tasks))

    with pytest.raises(InvalidError) as refused:
        convert.to_model(message, Job)

    [violation] = refused.value.violations
    assert violation.path.startswith("spec.tasks[1].template")


def test_a_claim_that_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidError, match=r"^volumeClaim: must be an object, is \[\]$"):
        convert.to_model(job_pb2.VolumeSpec(volume_claim_json="[]"), VolumeSpec)


def test_a_message_with_what_cannot_be_stored_is_refused() -> None:
    message = job_pb2.Job(metadata=meta_pb2.ObjectMeta(labels={"a": "b\0"}))

    with pytest.raises(InvalidError, match=r"^metadata\.labels\.a: must be a text without NUL"):
        convert.to_model(message, Job)


def test_an_empty_message_is_an_object_with_its_defaults() -> None:
    assert convert.to_model(job_pb2.Job(), Job) == Job()

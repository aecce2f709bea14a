"""Models to protobuf messages and back, for every kind alike.

A message's field has the name of the model's attribute; a test compares them all. Two things
differ in shape: pod templates and claims travel as JSON text, so that no number changes on
the way, and the lists in ``plugins`` as ``ListValue``, so that an empty one does not vanish.
An empty list or map of any other field is an absent one, as messages cannot tell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue

from hekla.api.decode import read_as
from hekla.api.fields import Model, alias
from hekla.api.plain import require_plain
from hekla.domain import paths
from hekla.domain.errors import InvalidError, Violation

P = TypeVar("P", bound=Message)
M = TypeVar("M", bound=Model)

AS_TEXT: Final[Mapping[str, str]] = {
    "template_json": "template",
    "volume_claim_json": "volume_claim",
}
"""Fields that hold JSON text, and the attributes they stand for."""


def to_message(model: Model, cls: type[P]) -> P:
    """``model`` as a message."""
    message = cls()
    _write(model, message)
    return message


def to_model(message: Message, cls: type[M]) -> M:
    """``message`` as a model, with CRD defaults, its bounds not yet checked.

    Raises:
        InvalidError: a text that should be JSON is none, or holds what cannot be stored.
    """
    try:
        values = _read(message)
    except _UnreadError as error:
        raise InvalidError.of([Violation(error.path, error.reason)]) from None
    require_plain(values)
    return read_as(cls, values)


class _UnreadError(Exception):
    """A text that is no JSON, and where it is: the keys from there outwards."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.keys: list[str | int] = []

    @property
    def path(self) -> str:
        return paths.at("", *reversed(self.keys))


class _Field(NamedTuple):
    """How one field goes either way."""

    attribute: str
    alias: str
    write: Callable[[Message, str, Any], None]
    read: Callable[[Any], Any]


@cache
def _fields(descriptor: Descriptor) -> dict[str, _Field]:
    return {field.name: _field(field) for field in descriptor.fields}


def _field(field: FieldDescriptor) -> _Field:
    attribute = AS_TEXT.get(field.name, field.name)
    return _Field(attribute, alias(attribute), *_ways(field))


def _ways(field: FieldDescriptor) -> tuple[Any, Any]:
    if field.name in AS_TEXT:
        return _write_json, _read_json
    entry = field.message_type
    if entry is None:
        return (_write_texts, _read_texts) if field.is_repeated else (setattr, _read_scalar)
    if entry.GetOptions().map_entry:
        return _map_ways(entry.fields_by_name["value"])
    if field.is_repeated:
        return _write_messages, _read_messages
    return _write_message, _read


def _map_ways(value: FieldDescriptor) -> tuple[Any, Any]:
    if value.message_type is None:
        return _write_map, _read_map
    if value.message_type.full_name == ListValue.DESCRIPTOR.full_name:
        return _write_lists, _read_lists
    return _write_message_map, _read_message_map


def _write(model: Model, message: Message) -> None:
    values = model.__dict__
    for name, field in _fields(message.DESCRIPTOR).items():
        value = values[field.attribute]
        if value is not None:
            field.write(message, name, value)


def _read(message: Message) -> dict[str, Any]:
    fields = _fields(message.DESCRIPTOR)
    values = {}
    for descriptor, value in message.ListFields():
        field = fields[descriptor.name]
        try:
            values[field.alias] = field.read(value)
        except _UnreadError as error:
            error.keys.append(field.alias)
            raise
    return values


def _write_json(message: Message, name: str, value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    setattr(message, name, text)


def _read_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise _UnreadError(f"must be JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number in JSON")


def _write_texts(message: Message, name: str, values: list[str]) -> None:
    getattr(message, name).extend(values)


def _read_texts(values: Any) -> list[str]:
    return list(values)


def _read_scalar(value: Any) -> Any:
    return value


def _write_map(message: Message, name: str, values: Mapping[str, Any]) -> None:
    getattr(message, name).update(values)


def _read_map(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(values)


def _write_lists(message: Message, name: str, values: Mapping[str, list[str]]) -> None:
    lists = getattr(message, name)
    for key, items in values.items():
        # Reading an entry of a map of messages makes it, also when nothing is put in.
        lists[key].extend(items)


def _read_lists(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {key: list(items) for key, items in values.items()}


def _write_message_map(message: Message, name: str, values: Mapping[str, Model]) -> None:
    entries = getattr(message, name)
    for key, value in values.items():
        _write(value, entries[key])


def _read_message_map(values: Mapping[str, Message]) -> dict[str, Any]:
    return {key: _read_at(key, value) for key, value in values.items()}


def _read_at(key: str | int, message: Message) -> dict[str, Any]:
    try:
        return _read(message)
    except _UnreadError as error:
        error.keys.append(key)
        raise


def _write_messages(message: Message, name: str, values: list[Model]) -> None:
    entries = getattr(message, name)
    for value in values:
        _write(value, entries.add())


def _read_messages(values: Any) -> list[dict[str, Any]]:
    return [_read_at(index, value) for index, value in enumerate(values)]


def _write_message(message: Message, name: str, value: Model) -> None:
    part = getattr(message, name)
    part.SetInParent()
    _write(value, part)

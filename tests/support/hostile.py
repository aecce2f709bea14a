"""Any message of a type, with values that somebody may try."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor as Field
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Value
from hypothesis import strategies as st

M = TypeVar("M", bound=Message)

DEEP: Final = 1_500
"""Deeper than Python's stack."""
WORDS: Final = (
    "",
    "\0",
    "a\0b",
    "j",
    "default",
    "root",
    "t",
    "Running",
    "AbortJob",
    "RestartPod",
    "OpenQueue",
    "CloseQueue",
    "PodEvicted",
    "*",
    "1h",
    "-1s",
    "9" * 30 + "h",
    "..",
    "../../etc/passwd",
    "a/b",
    "Ünïcödé",
    "👾" * 20,
    "\ud7ff\ue000\U0010ffff",
    "'; drop table job; --",
    "%s%n{0}",
    "x" * 300,
    "x" * 5_000,
    "00000000-0000-0000-0000-000000000000",
    "not in (a, b)",
    "a=b,c!=d,e in (f,g),!h",
    "MDAwMC0wMC0wMCB4",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "1e400",
    "-5",
    "10Gi",
    "NaN",
)
JSON: Final = (
    "",
    "{",
    "null",
    "[]",
    "{}",
    "1",
    '"text"',
    "NaN",
    '{"a": 1e999}',
    '{"a": 123456789012345678901234567890}',
    '{"a": "\\u0000"}',
    '{"\\u0000": 1}',
    '{"a": "\\ud800"}',
    '{"spec": null}',
    '{"spec": []}',
    '{"spec": {"containers": null}}',
    '{"spec": {"containers": [{}]}}',
    '{"spec": {"containers": [1]}}',
    '{"metadata": 1, "spec": {"containers": [{"name": "c", "image": "i"}]}}',
    '{"metadata": {"labels": {"a": 1}}, "spec": {"containers": [{"name": "c"}]}}',
    '{"spec": {"containers": [{"name": "c", "image": "i", "env": [1]}]}}',
    '{"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": 1}}]}}',
    "[" * DEEP + "]" * DEEP,
    '{"a":' * DEEP + "1" + "}" * DEEP,
    json.dumps({"a": "x" * 200_000}),
)
INTEGERS: Final = (0, 1, -1, 2, 500, 2**31 - 1, -(2**31))
LARGE_INTEGERS: Final = (*INTEGERS, 2**63 - 1, -(2**63))


@cache
def messages(cls: type[M], *bait: str) -> st.SearchStrategy[M]:
    """Messages of ``cls``; ``bait`` are texts that mean something where they come from."""
    return _messages(cls.DESCRIPTOR, bait).map(lambda fill: _filled(cls, fill))


def mutations(base: M, *bait: str) -> st.SearchStrategy[M]:
    """``base``, with some of it replaced, added to or taken away."""
    return _mutate(base, bait)


Fill = Callable[[Message], None]


def _filled(cls: type[M], fill: Fill) -> M:
    message = cls()
    fill(message)
    return message


@cache
def _messages(descriptor: Descriptor, bait: tuple[str, ...]) -> st.SearchStrategy[Fill]:
    """What fills in some of the fields."""
    fields = list(descriptor.fields)
    if not fields:
        return st.just(_nothing)
    some = st.lists(st.sampled_from(fields), max_size=min(6, len(fields)), unique=True)
    return some.flatmap(
        lambda chosen: st.tuples(*[_setter(field, bait) for field in chosen])
    ).map(_all)


def _nothing(_: Message) -> None:
    """Fill in no field."""


def _all(fills: Sequence[Fill]) -> Fill:
    def fill(message: Message) -> None:
        for one in fills:
            one(message)

    return fill


@cache
def _setter(field: Field, bait: tuple[str, ...]) -> st.SearchStrategy[Fill]:
    """What gives one field a value."""
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        return _map_setter(field, entry.fields_by_name["value"], bait)
    values = _values(field, bait)
    if field.is_repeated:
        return st.lists(values, max_size=3).map(lambda items: _extend(field, items))
    return values.map(lambda value: _set(field, value))


def _map_setter(field: Field, value: Field, bait: tuple[str, ...]) -> st.SearchStrategy[Fill]:
    entries = st.dictionaries(_texts(bait), _values(value, bait), max_size=3)

    def setter(items: dict[str, Any]) -> Fill:
        def fill(message: Message) -> None:
            target = getattr(message, field.name)
            for key, item in items.items():
                if value.message_type is None:
                    target[key] = item
                else:
                    item(target[key])

        return fill

    return entries.map(setter)


def _extend(field: Field, items: Sequence[Any]) -> Fill:
    def fill(message: Message) -> None:
        target = getattr(message, field.name)
        for item in items:
            if field.message_type is None:
                target.append(item)
            else:
                item(target.add())

    return fill


def _set(field: Field, value: Any) -> Fill:
    def fill(message: Message) -> None:
        if field.message_type is None:
            setattr(message, field.name, value)
        else:
            part = getattr(message, field.name)
            part.SetInParent()
            value(part)

    return fill


def _values(field: Field, bait: tuple[str, ...]) -> st.SearchStrategy[Any]:
    if field.message_type is not None:
        if field.message_type.full_name == ListValue.DESCRIPTOR.full_name:
            return st.lists(_texts(bait) | st.floats(), max_size=2).map(_fill_list)
        return st.deferred(lambda: _messages(field.message_type, bait))
    if field.name.endswith("_json"):
        return st.sampled_from(JSON)
    return {
        Field.CPPTYPE_STRING: _texts(bait),
        Field.CPPTYPE_INT32: st.sampled_from(INTEGERS),
        Field.CPPTYPE_INT64: st.sampled_from(LARGE_INTEGERS),
        Field.CPPTYPE_BOOL: st.booleans(),
    }[field.cpp_type]


def _fill_list(items: Sequence[Any]) -> Fill:
    def fill(message: Message) -> None:
        assert isinstance(message, ListValue)
        for item in items:
            value = Value()
            if isinstance(item, str):
                value.string_value = item
            else:
                value.number_value = item
            message.values.append(value)

    return fill


@cache
def _texts(bait: tuple[str, ...]) -> st.SearchStrategy[str]:
    any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    return st.sampled_from((*bait, *bait, *WORDS)) | any_text


def _mutate(base: M, bait: tuple[str, ...]) -> st.SearchStrategy[M]:
    places = [
        (path, field) for path, part in _parts(base, ()) for field in part.DESCRIPTOR.fields
    ]

    def apply(changes: Sequence[Any]) -> M:
        changed = type(base)()
        changed.CopyFrom(base)
        for path, field, fill in changes:
            part = _at(changed, path)
            if part is None:
                continue
            part.ClearField(field.name)
            if fill is not None:
                fill(part)
        return changed

    change = st.sampled_from(places).flatmap(
        lambda place: st.tuples(
            st.just(place[0]), st.just(place[1]), st.none() | _setter(place[1], bait)
        )
    )
    return st.lists(change, min_size=1, max_size=3).map(apply)


Path = tuple[tuple[str, int | None], ...]


def _parts(message: Message, path: Path) -> list[tuple[Path, Message]]:
    """The message and every message in it, with where it is."""
    found: list[tuple[Path, Message]] = [(path, message)]
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        if field.is_repeated:
            for index, one in enumerate(value):
                found += _parts(one, (*path, (field.name, index)))
        else:
            found += _parts(value, (*path, (field.name, None)))
    return found


def _at(message: Message, path: Path) -> Message | None:
    """The part at a place, unless it was taken away."""
    part: Any = message
    for name, index in path:
        if index is None:
            if not part.HasField(name):
                return None
            part = getattr(part, name)
        else:
            items = getattr(part, name)
            if index >= len(items):
                return None
            part = items[index]
    found: Message = part
    return found

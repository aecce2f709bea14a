"""Which values of an object's fields are accepted: the second step of reading.

Runs after admission has filled in its defaults, since those may repair what is refused here,
such as an explicitly empty queue.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Union

from hekla.api.fields import Bound, Model, shown
from hekla.api.hyper_node import MemberSelector
from hekla.api.meta import EmbeddedMeta, LabelSelector, ObjectMeta
from hekla.domain import paths, selector, syntax
from hekla.domain.errors import InvalidError, Violation

LARGEST_ANNOTATIONS: Final = 256 * 1024
"""Bytes of all annotations of one object, keys included."""


def violations(model: Model, path: str = "") -> list[Violation]:
    """All values in ``model`` that are out of bounds; ``path`` is where it stands."""
    found: list[Violation] = []
    _look(model, path, found)
    return found


@dataclass(frozen=True, slots=True)
class _Field:
    """What there is to look at in one field."""

    name: str
    alias: str
    bounds: tuple[Bound, ...]
    required: bool
    holds_models: bool


@cache
def _fields(cls: type[Model]) -> tuple[_Field, ...]:
    hints = typing.get_type_hints(cls, include_extras=True)
    found = []
    for name, info in cls.model_fields.items():
        bounds = tuple(_bounds(hints[name]))
        field = _Field(
            name=name,
            alias=info.alias or name,
            bounds=bounds,
            required=any(bound.required for bound in bounds),
            holds_models=_holds_models(hints[name]),
        )
        if bounds or field.holds_models:
            found.append(field)
    return tuple(found)


def _bounds(hint: Any) -> Iterator[Bound]:
    """Bounds beside a type, also inside ``… | None``, but not of what it holds."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        inner, *metadata = typing.get_args(hint)
        yield from (item for item in metadata if isinstance(item, Bound))
        yield from _bounds(inner)
    elif origin in (Union, types.UnionType):
        for inner in typing.get_args(hint):
            yield from _bounds(inner)


def _holds_models(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, Model):
        return True
    return any(_holds_models(inner) for inner in typing.get_args(hint))


def _look(model: Model, path: str, found: list[Violation]) -> None:
    for field in _fields(type(model)):
        value = getattr(model, field.name)
        if value is None:
            if field.required:
                found.append(Violation(paths.at(path, field.alias), "is required"))
            continue
        for bound in field.bounds:
            wrong = bound.error(value)
            if wrong is not None:
                found.append(Violation(paths.at(path, field.alias), wrong))
                break
            if bound.each is not None:
                _look_at_each(bound.each, value, paths.at(path, field.alias), found)
        if field.holds_models:
            _look_inside(value, paths.at(path, field.alias), found)
    whole = _WHOLE.get(type(model))
    if whole is not None:
        found += whole(model, path)


def _look_at_each(bound: Bound, value: Any, path: str, found: list[Violation]) -> None:
    for key, item in _entries(value):
        wrong = bound.error(item)
        if wrong is not None:
            found.append(Violation(paths.at(path, key), wrong))


def _look_inside(value: Any, path: str, found: list[Violation]) -> None:
    if isinstance(value, Model):
        _look(value, path, found)
    else:
        for key, item in _entries(value):
            _look(item, paths.at(path, key), found)


def _entries(value: Any) -> Iterable[tuple[str | int, Any]]:
    return value.items() if isinstance(value, dict) else enumerate(value)


def _metadata(meta: ObjectMeta, path: str) -> Iterator[Violation]:
    """What every object's metadata must keep to, as Kubernetes has it."""
    if meta.name:
        yield from _wrong(syntax.subdomain_error(meta.name), meta.name, path, "name")
    elif not meta.generate_name:
        yield Violation(paths.at(path, "name"), "is required")
    if meta.generate_name:
        # What is generated goes on with letters and digits.
        wrong = syntax.subdomain_error(f"{meta.generate_name}x")
        yield from _wrong(wrong, meta.generate_name, path, "generateName")
    yield from _embedded_metadata(meta, path)


def _embedded_metadata(meta: ObjectMeta | EmbeddedMeta, path: str) -> Iterator[Violation]:
    """The same without names, which are given to what is made."""
    if meta.namespace:
        wrong = syntax.label_error(meta.namespace)
        yield from _wrong(wrong, meta.namespace, path, "namespace")
    yield from selector.validate_labels(meta.labels or {}, paths.at(path, "labels"))
    yield from _annotations(meta.annotations or {}, paths.at(path, "annotations"))
    for index, finalizer in enumerate(meta.finalizers or ()):
        wrong = syntax.qualified_name_error(finalizer)
        yield from _wrong(wrong, finalizer, path, "finalizers", index)


def _annotations(annotations: Mapping[str, str], path: str) -> Iterator[Violation]:
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        # Keys may have capitals in their prefix, unlike those of labels.
        yield from _wrong(syntax.qualified_name_error(key.lower()), key, path, key)
    if size > LARGEST_ANNOTATIONS:
        message = f"must have no more than {LARGEST_ANNOTATIONS} bytes in all, has {size}"
        yield Violation(path, message)


def _label_selector(value: LabelSelector, path: str) -> Iterator[Violation]:
    try:
        selector.from_object(value.model_dump(by_alias=True))
    except InvalidError as error:
        for violation in error.violations:
            # A key or an operator that is missing is found by its bound already.
            if violation.message != "is required" and "is None" not in violation.message:
                yield Violation(f"{path}.{violation.path}", violation.message)


def _member_selector(value: MemberSelector, path: str) -> Iterator[Violation]:
    ways = (value.exact_match, value.regex_match, value.label_match)
    count = sum(way is not None for way in ways)
    if count != 1:
        message = f"must have one of exactMatch, regexMatch and labelMatch, has {count}"
        yield Violation(path, message)


def _wrong(wrong: str | None, value: str, path: str, *keys: str | int) -> Iterator[Violation]:
    if wrong is not None:
        yield Violation(paths.at(path, *keys), f"{wrong}, is {shown(value)}")


_WHOLE: Final[Mapping[type[Model], Callable[[Any, str], Iterable[Violation]]]] = {
    ObjectMeta: _metadata,
    EmbeddedMeta: _embedded_metadata,
    MemberSelector: _member_selector,
    LabelSelector: _label_selector,
}

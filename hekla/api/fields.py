"""What fields are made of: the base of all models, their types, and bounds.

Types and CRD defaults are pydantic's business and hold from the moment an object exists.
A ``Bound`` beside a type says which values are accepted; ``bounds.violations`` asks it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from hekla.domain import duration, paths, quantity, timestamps
from hekla.domain.errors import InvalidError

_ODD_ALIASES: Final = {"transition_id": "transitionID"}


def alias(name: str) -> str:
    """A field's name in JSON and YAML: ``min_available`` is ``minAvailable``."""
    odd = _ODD_ALIASES.get(name)
    if odd is not None:
        return odd
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class Model(BaseModel):
    """An immutable part of an API object, in Python's spelling.

    ``model_copy(update=…)`` gives a changed one. An absent field is None where absent means
    something else than zero; what is given is kept, zero and empty values too.
    """

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        alias_generator=alias,
        validate_by_name=True,
        validate_by_alias=True,
    )


@dataclass(frozen=True, slots=True)
class Bound:
    """Which values of a field are accepted. Absent fields are, unless ``required``."""

    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    one_of: Sequence[str] | None = None
    check: Callable[[str], str | None] | None = None
    """Gives what is wrong with a text, or None."""
    each: Bound | None = None
    """Holds for each item of a list, or each value of a map."""
    required: bool = False

    def error(self, value: Any) -> str | None:
        """What is wrong with ``value``, or None."""
        if isinstance(value, int):
            return self._number_error(value)
        if isinstance(value, str):
            return self._text_error(value)
        if self.min_items is not None and len(value) < self.min_items:
            return f"must have {self.min_items} or more items, has {len(value)}"
        return None

    def _number_error(self, value: int) -> str | None:
        if self.minimum is not None and value < self.minimum:
            return f"must be >= {self.minimum}, is {value}"
        if self.maximum is not None and value > self.maximum:
            return f"must be <= {self.maximum}, is {value}"
        return None

    def _text_error(self, value: str) -> str | None:
        if self.max_length is not None and len(value) > self.max_length:
            return f"must be no more than {self.max_length} characters, has {len(value)}"
        if self.min_length is not None and len(value) < self.min_length:
            return "must not be empty"
        if self.one_of is not None and value not in self.one_of:
            return f"must be one of {', '.join(self.one_of)}, is {shown(value)}"
        wrong = self.check(value) if self.check is not None else None
        return f"{wrong}, is {shown(value)}" if wrong else None


def shown(value: object) -> str:
    """``value`` as error messages show it: as in YAML, not too long."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    text = paths.printable(text)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _parsed_by(parse: Callable[[str], object], what: str) -> Callable[[str], str | None]:
    def check(text: str) -> str | None:
        try:
            parse(text)
        except InvalidError:
            return what
        return None

    return check


def _texts(value: Any) -> Any:
    """Whole numbers as texts: quantities may be either, and are kept as texts."""
    if type(value) is not dict:
        return value
    return {key: str(item) if type(item) is int else item for key, item in value.items()}


def default_for_null(default: Any) -> BeforeValidator:
    """Null means absent, as it does to a custom resource's defaults."""
    return BeforeValidator(lambda value: default if value is None else value)


def unless_empty(part: Callable[[], Any]) -> Any:
    """A field that is always there, and left out of JSON while nobody has written to it."""
    empty = part()
    return Field(default_factory=part, exclude_if=lambda value: value == empty)


empty_for_null: Final = BeforeValidator(lambda value: {} if value is None else value)
"""For parts that are always there."""

Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Count = Annotated[Int32, Bound(minimum=0), default_for_null(0)]
Name = Annotated[str, default_for_null(""), Field(exclude_if=operator.not_)]
"""A name, for which empty and absent are the same."""
Json = dict[str, Any]
"""Kept as it is given."""

QUANTITY: Final = Bound(
    check=_parsed_by(quantity.parse, "must be a quantity such as 500m or 4Gi")
)
ResourceList = Annotated[dict[str, str], BeforeValidator(_texts), Bound(each=QUANTITY)]
DURATION: Final = Bound(
    check=_parsed_by(duration.parse, "must be a duration such as 10s or 1h30m")
)
Duration = Annotated[str, DURATION]
TIMESTAMP: Final = Bound(
    check=_parsed_by(timestamps.from_text, "must be a time such as 2026-01-02T03:04:05Z")
)
Timestamp = Annotated[str, TIMESTAMP]

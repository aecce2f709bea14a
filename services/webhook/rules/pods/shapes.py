"""Looking into data that has no model: pod templates.

A ``Part`` is an object at a place. What is asked of it is reported when it is of the wrong
type, once, and then counts as absent; so rules read as if everything were well formed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hekla.api.fields import shown
from hekla.domain import paths, quantity, syntax
from hekla.domain.errors import InvalidError, Violation

Check = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Part:
    """An object inside another."""

    value: Mapping[str, Any]
    path: str
    found: list[Violation]
    """Shared by all parts of one look."""

    def at(self, *keys: str | int) -> str:
        """The path of something inside."""
        return paths.at(self.path, *keys)

    def wrong(self, message: str, *keys: str | int) -> None:
        """Report something."""
        self.found.append(Violation(self.at(*keys), message))

    def part(self, key: str) -> Part | None:
        """The object at ``key``."""
        value = self.value.get(key)
        if isinstance(value, dict):
            return Part(value, self.at(key), self.found)
        if value is not None:
            self.wrong(f"must be an object, is {shown(value)}", key)
        return None

    def parts(self, key: str) -> Iterator[Part]:
        """The objects in the list at ``key``."""
        for index, value in enumerate(self._list(key)):
            if isinstance(value, dict):
                yield Part(value, self.at(key, index), self.found)
            else:
                self.wrong(f"must be an object, is {shown(value)}", key, index)

    def texts(self, key: str) -> None:
        """Require a list of texts at ``key``."""
        for index, value in enumerate(self._list(key)):
            if not isinstance(value, str):
                self.wrong(f"must be a text, is {shown(value)}", key, index)

    def text(self, key: str, *, required: bool = False, check: Check | None = None) -> str:
        """The text at ``key``, or an empty one."""
        value = self.value.get(key)
        if value is None or value == "":
            if required:
                self.wrong("is required", key)
            return ""
        if not isinstance(value, str):
            self.wrong(f"must be a text, is {shown(value)}", key)
            return ""
        wrong = check(value) if check is not None else None
        if wrong is not None:
            self.wrong(f"{wrong}, is {shown(value)}", key)
        return value

    def one_of(self, key: str, known: Sequence[str]) -> None:
        """Require one of ``known`` at ``key``, if there is anything."""
        value = self.text(key)
        if value and value not in known:
            self.wrong(f"must be one of {', '.join(known)}, is {shown(value)}", key)

    def integer(self, key: str, *, minimum: int, maximum: int, required: bool = False) -> None:
        """Require an integer between two bounds at ``key``."""
        value = self.value.get(key)
        if value is None:
            if required:
                self.wrong("is required", key)
        elif isinstance(value, bool) or not isinstance(value, int):
            self.wrong(f"must be an integer, is {shown(value)}", key)
        elif not minimum <= value <= maximum:
            self.wrong(f"must be between {minimum} and {maximum}, is {value}", key)

    def boolean(self, key: str) -> None:
        """Require a boolean at ``key``, if there is anything."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, bool):
            self.wrong(f"must be true or false, is {shown(value)}", key)

    def labels(self, key: str) -> Mapping[str, str]:
        """The map of texts at ``key``."""
        part = self.part(key)
        if part is None:
            return {}
        texts = {}
        for name, value in part.value.items():
            if isinstance(value, str):
                texts[name] = value
            else:
                part.wrong(f"must be a text, is {shown(value)}", name)
        return texts

    def quantities(self, key: str) -> Mapping[str, Any]:
        """The amounts at ``key``, by resource; each is a ``Fraction``, and none is negative."""
        part = self.part(key)
        amounts = {}
        for name, value in part.value.items() if part is not None else ():
            try:
                amount = quantity.parse(value)
            except InvalidError as error:
                self.wrong(str(error), key, name)
                continue
            if amount < 0:
                self.wrong(f"must be >= 0, is {shown(value)}", key, name)
            amounts[name] = amount
        return amounts

    def _list(self, key: str) -> Sequence[Any]:
        value = self.value.get(key)
        if value is not None and not isinstance(value, list):
            self.wrong(f"must be a list, is {shown(value)}", key)
            return ()
        return value or ()


def port_name_error(name: str) -> str | None:
    """What keeps ``name`` from being the name of a port."""
    fits = len(name) <= 15 and syntax.label_error(name) is None and "--" not in name
    if fits and any(character.isalpha() for character in name):
        return None
    return "must be 15 or fewer lower case letters, digits and '-', with a letter among them"

"""The arguments of one plugin, as the configuration gives them."""

from __future__ import annotations

from collections.abc import Mapping

from hekla.domain.errors import Violation


class Arguments:
    """Answers for each argument its value or its default; notes what is wrong with it."""

    def __init__(self, values: Mapping[str, object], path: str = "arguments") -> None:
        self._values = values
        self._path = path
        self._asked: set[str] = set()
        self.violations: list[Violation] = []
        """Arguments whose values have the wrong type."""

    @property
    def unknown(self) -> list[str]:
        """Arguments that nobody asked for."""
        return sorted(set(self._values) - self._asked)

    def weight(self, name: str, default: int, *, most: int) -> int:
        """A whole number; one below zero counts as the default."""
        value = self._take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self._violate(name, f"must be a whole number, is {value!r}")
            return default
        if value > most:
            self._violate(name, f"must be <= {most}, is {value}")
            return default
        return value if value >= 0 else default

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false, also as a text that says so."""
        value = self._take(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        if isinstance(value, str) and value in _TRUTH:
            return _TRUTH[value]
        self._violate(name, f"must be true or false, is {value!r}")
        return default

    def names(self, name: str) -> list[str]:
        """Names separated by commas."""
        value = self._take(name)
        if value is None:
            return []
        if not isinstance(value, str):
            self._violate(name, f"must be names separated by commas, is {value!r}")
            return []
        return [each.strip() for each in value.split(",") if each.strip()]

    def _take(self, name: str) -> object:
        self._asked.add(name)
        return self._values.get(name)

    def _violate(self, name: str, message: str) -> None:
        self.violations.append(Violation(f"{self._path}.{name}", message))


_TRUTH = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
"""As Go reads truth values."""

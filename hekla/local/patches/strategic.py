"""Strategic merge patches: merge patches that know how lists are merged. Pure.

Items of a list are told apart by a field of theirs (``merge_keys``). A patch may say more
than values: ``$patch: replace|delete`` in an object or an item, ``$retainKeys`` beside fields,
``$setElementOrder/<list>`` and ``$deleteFromPrimitiveList/<list>``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from hekla.local.patches.merge_keys import PLAIN, Merging
from hekla.local.patches.standard import MalformedError, UnfitError, without_nulls

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StrategicPatch:
    """A patch for objects that are merged so."""

    value: Object
    merging: Merging

    def apply(self, target: Any) -> Any:
        """See ``Patch``.

        Raises:
            MalformedError: the patch says what none may say.
        """
        return _object(target, self.value, self.merging)


def _object(old: Object, patch: Object, merging: Merging) -> Object:
    if _PATCH in patch:
        return _directed(patch)
    merged = _retained(old, patch)
    done: set[str] = set()
    for key, value in patch.items():
        if key.startswith(_ORDER):
            name = key.removeprefix(_ORDER)
            _order(merged, patch, name, value, merging.fields.get(name, PLAIN))
            done.add(name)
    for key, value in patch.items():
        if key in done or key == _RETAIN or key.startswith(_ORDER):
            continue
        if key.startswith(_DELETE):
            _delete(merged, key.removeprefix(_DELETE), value)
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = _value(merged.get(key), value, merging.fields.get(key, PLAIN))
    return merged


def _directed(patch: Object) -> Object:
    directive = patch[_PATCH]
    if directive == "replace":
        plain: Object = without_nulls({k: v for k, v in patch.items() if k != _PATCH})
        return plain
    if directive == "delete":
        return {}
    raise UnfitError(f"unknown patch type: {directive!r}")


def _retained(old: Object, patch: Object) -> Object:
    """A copy of the old object, without what the patch does not retain."""
    if _RETAIN not in patch:
        return dict(old)
    kept = patch[_RETAIN]
    if not isinstance(kept, list):
        raise MalformedError(f"{_RETAIN} must be a list of names")
    for key, value in patch.items():
        if value is not None and key not in kept and not key.startswith("$"):
            raise MalformedError(f"{_RETAIN} must name {key}, which the patch sets")
    return {key: value for key, value in old.items() if key in kept}


def _value(old: Any, value: Any, merging: Merging) -> Any:
    if isinstance(value, dict):
        if isinstance(old, dict) and not merging.replaced:
            return _object(old, value, merging)
        return _fresh(value)
    if isinstance(value, list) and isinstance(old, list) and merging.merged:
        return _list(old, value, merging)
    return _fresh(value)


def _fresh(value: Any) -> Any:
    """A value that meets nothing old: without nulls, and without what is said beside values."""
    if isinstance(value, dict):
        if value.get(_PATCH) == "delete":
            return {}
        return {
            key: _fresh(item)
            for key, item in value.items()
            if item is not None and not key.startswith((_ORDER, _DELETE, _PATCH, _RETAIN))
        }
    if isinstance(value, list):
        return [
            _fresh(item)
            for item in value
            if not (isinstance(item, dict) and (_is_bare(item) or _deletes(item)))
        ]
    return value


def _is_bare(item: Object) -> bool:
    return list(item) == [_PATCH]


def _deletes(item: Object) -> bool:
    return item.get(_PATCH) == "delete"


def _list(old: list[Any], patch: list[Any], merging: Merging) -> list[Any]:
    items = old + patch
    if any(isinstance(item, list) for item in items):
        raise UnfitError("lists of lists cannot be merged")
    if not any(isinstance(item, dict) for item in items):
        merged = list({_identity(item, ""): item for item in items}.values())
        return _arranged(merged, patch, old, "")
    if not all(isinstance(item, dict) for item in items):
        raise UnfitError("a list of objects and one of scalars cannot be merged")
    if not merging.key:
        raise UnfitError("a list of objects without a merge key cannot be merged")
    return _items(old, patch, merging)


def _items(old: list[Object], patch: list[Object], merging: Merging) -> list[Object]:
    key = merging.key
    plain: list[Object] = []
    gone: set[bytes] = set()
    replaces = False
    for item in patch:
        directive = item.get(_PATCH)
        if directive is None:
            plain.append(item)
        elif directive == "delete":
            gone.add(_identity(_keyed(item, key), key))
        elif directive == "replace":
            replaces = True
        else:
            raise UnfitError(f"unknown patch type: {directive!r}")
    if replaces:
        return [_fresh(item) for item in plain]
    merged = [each for each in old if _identity(each, key) not in gone]
    remaining, places = list(merged), _places(merged, key)
    for item in plain:
        identity = _identity(_keyed(item, key), key)
        if identity in places:
            at = places[identity]
            merged[at] = _object(merged[at], item, Merging(fields=merging.fields))
        else:
            places[identity] = len(merged)
            merged.append(_fresh(item))
    return _arranged(merged, plain, remaining, key)


def _keyed(item: Object, key: str) -> Object:
    if item.get(key) is None:
        raise UnfitError(f"an item of the patch does not have its merge key: {key}")
    return item


def _delete(merged: Object, name: str, gone: Any) -> None:
    if not isinstance(gone, list):
        raise MalformedError(f"{_DELETE}{name} must be a list")
    if isinstance(merged.get(name), list):
        unwanted = {_identity(item, "") for item in gone}
        merged[name] = [each for each in merged[name] if _identity(each, "") not in unwanted]


def _order(merged: Object, patch: Object, name: str, order: Any, merging: Merging) -> None:
    """Merge a list whose order the patch gives, into ``merged``."""
    old, new = merged.get(name), patch.get(name)
    if not isinstance(order, list) or not isinstance(new or [], list):
        raise MalformedError(f"{_ORDER}{name} must be a list, and about a list")
    if old is not None and not isinstance(old, list):
        raise UnfitError(f"{name} is no list")
    if old is None and new is None:
        return
    _check_order(new or [], order, name, merging.key)
    found = old or []
    if new is not None:
        found = _fresh(new) if old is None else _value(old, new, merging)
    merged[name] = _arranged(found, order, old or [], merging.key)


def _check_order(new: list[Any], order: list[Any], name: str, key: str) -> None:
    """Refuse an order that does not have what the patch sets, as the patch has it."""
    ordered = _places(order, key)
    places = []
    for item in new:
        if isinstance(item, dict) and _PATCH in item:
            continue
        place = ordered.get(_identity(item, key))
        if place is None:
            raise MalformedError(f"{_ORDER}{name} lacks an item that the patch sets")
        places.append(place)
    if places != sorted(places):
        raise MalformedError(f"{_ORDER}{name} differs from the order of the patch")


def _arranged(
    merged: list[Any], order: Sequence[Any], live: Sequence[Any], key: str
) -> list[Any]:
    """``merged`` in the given order; what that does not name stays where ``live`` has it."""
    ordered, stood = _places(order, key), _places(live, key)
    named: list[tuple[int, int | None, Any]] = []
    others: list[tuple[int, Any]] = []
    for item in merged:
        identity = _identity(item, key)
        if identity in ordered:
            named.append((ordered[identity], stood.get(identity), item))
        else:
            others.append((stood.get(identity, len(live)), item))
    named.sort(key=lambda each: each[0])
    others.sort(key=lambda each: each[0])
    arranged = []
    left = 0
    for _, place, item in named:
        while left < len(others) and place is not None and others[left][0] < place:
            arranged.append(others[left][1])
            left += 1
        arranged.append(item)
    return arranged + [item for _, item in others[left:]]


def _places(listed: Sequence[Any], key: str) -> dict[bytes, int]:
    """Where each item of a list stands first."""
    found: dict[bytes, int] = {}
    for index, item in enumerate(listed):
        found.setdefault(_identity(item, key), index)
    return found


def _identity(item: Any, key: str) -> bytes:
    """What tells an item from the others of its list."""
    return orjson.dumps(item.get(key) if key and isinstance(item, dict) else item)


def parsed(value: Mapping[str, Any] | Any, merging: Merging) -> StrategicPatch:
    """The patch that a body states.

    Raises:
        MalformedError: it is none.
    """
    if not isinstance(value, dict):
        raise MalformedError("a strategic merge patch must be an object")
    return StrategicPatch(value, merging)

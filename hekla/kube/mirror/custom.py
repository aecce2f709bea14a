"""Custom resources as the mirror reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hekla.domain import names
from hekla.domain.names import Key
from hekla.kube.resources import Resource

ROW_UID: Final = "hekla.io/row-uid"
"""Annotation of a custom resource that is made from a row: the row's uid."""
ROW_GENERATION: Final = "hekla.io/row-generation"
"""Annotation beside it: the generation of the row that its spec is."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The object once more, as text: nothing that a row needs."""
ORPHAN: Final = "orphan"
"""The finalizer of an object whose dependents are to stay."""

_OURS: Final = frozenset({ROW_UID, ROW_GENERATION, names.REQUEST_ID, names.REQUEST_HASH})


@dataclass(frozen=True, slots=True)
class Custom:
    """One custom resource at one version."""

    key: Key
    """Its namespace is empty where the kind has none."""
    uid: str
    version: int
    """Its resourceVersion: of one object it only grows."""
    generation: int
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    mark: str = ""
    """The uid of the row it was made from; empty if somebody else made it."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The whole object, but for ``managedFields``; it states its kind."""

    @property
    def spec(self) -> Mapping[str, Any]:
        """What is wanted."""
        return _mapping(self.raw.get("spec"))

    @property
    def status(self) -> Mapping[str, Any]:
        """What was last shown."""
        return _mapping(self.raw.get("status"))

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return _mapping(_mapping(self.raw.get("metadata")).get("labels"))

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return _mapping(_mapping(self.raw.get("metadata")).get("annotations"))

    @property
    def orphaning(self) -> bool:
        """Whether it goes and what it owns is to stay."""
        return self.deleting and ORPHAN in self.finalizers


def read(resource: Resource, raw: Mapping[str, Any]) -> Custom:
    """The custom resource that an API server shows.

    Raises:
        ValueError: it lacks what every object has.
    """
    try:
        meta = raw["metadata"]
        annotations = _mapping(meta.get("annotations"))
        shown = {name: value for name, value in meta.items() if name != "managedFields"}
        return Custom(
            key=Key(str(meta.get("namespace") or ""), str(meta["name"])),
            uid=str(meta["uid"]),
            version=int(meta["resourceVersion"]),
            generation=int(meta.get("generation") or 0),
            deleting=meta.get("deletionTimestamp") is not None,
            finalizers=tuple(meta.get("finalizers") or ()),
            mark=str(annotations.get(ROW_UID) or ""),
            # Items of a list do not say what they are.
            raw={
                **raw,
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": shown,
            },
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no object of {resource.plural}: {error!r}") from error


def carried(annotations: Mapping[str, str]) -> dict[str, str]:
    """The annotations of a custom resource that its row has too."""
    return {
        key: value
        for key, value in annotations.items()
        if key not in _OURS and key != LAST_APPLIED
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

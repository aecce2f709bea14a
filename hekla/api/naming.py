"""Names for objects that give only the beginning of one."""

from __future__ import annotations

import secrets
from typing import Any, Final

from hekla.api.meta import ObjectMeta

SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5


def named(meta: ObjectMeta, *, namespace: str = "default") -> ObjectMeta:
    """``meta`` with a name, and with a namespace if it has none.

    An object that gives neither a name nor the beginning of one is left to admission.
    """
    changes: dict[str, Any] = {}
    if not meta.namespace and namespace:
        changes["namespace"] = namespace
    if not meta.name and meta.generate_name:
        ending = "".join(secrets.choice(SUFFIX) for _ in range(SUFFIX_LENGTH))
        changes["name"] = f"{meta.generate_name}{ending}"
    return meta.model_copy(update=changes) if changes else meta

"""Our kinds as a local cluster serves them once they are defined."""

from __future__ import annotations

from hekla.api.crd import DEFINITIONS
from hekla.local.kinds.registry import Registry
from hekla.local.rules import definitions


def registry() -> Registry:
    """The built-in kinds and ours."""
    served = Registry()
    for one in DEFINITIONS:
        manifest = one.manifest()
        definitions.defaults(manifest)
        served.define(*definitions.defined(manifest))
    return served

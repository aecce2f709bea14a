"""Our kinds as a local cluster serves them once they are defined."""

from __future__ import annotations

from hekla.api.crd import DEFINITIONS
from hekla.local import definition_rules
from hekla.local.registry import Registry


def registry() -> Registry:
    """The built-in kinds and ours."""
    served = Registry()
    for one in DEFINITIONS:
        manifest = one.manifest()
        definition_rules.defaults(manifest)
        served.define(*definition_rules.defined(manifest))
    return served

"""A Volcano beside us, as far as anybody can tell: its lease."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from hekla.domain.timestamps import to_micro_text
from hekla.lifecycle import repeating
from tests.support.local_cluster import LocalCluster

LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
_LASTS, _SOON_OVER = 60, 1
"""Seconds. Nobody takes it for dead because its renewals are slow, nor waits for its end."""


@contextmanager
def volcano(cluster: LocalCluster) -> Iterator[None]:
    """A lease that is renewed until the block ends, and left over then."""

    def spec() -> dict[str, object]:
        renewed = to_micro_text(datetime.now(UTC))
        return {"holderIdentity": "vc-1", "leaseDurationSeconds": _LASTS, "renewTime": renewed}

    def renew() -> bool:
        cluster.merge(f"{LEASES}/volcano", {"spec": spec()})
        return False

    cluster.make(LEASES, {"metadata": {"name": "volcano"}, "spec": spec()})
    with repeating("volcano", renew, idle=timedelta(milliseconds=200)):
        yield
    cluster.merge(f"{LEASES}/volcano", {"spec": {"leaseDurationSeconds": _SOON_OVER}})

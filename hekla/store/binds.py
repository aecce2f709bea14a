"""Placements the scheduler decided, written before Kubernetes is told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import orjson
from sqlalchemy import text

from hekla.store import batch, leases
from hekla.store.database import Session


@dataclass(frozen=True, slots=True)
class BindRecord:
    """One pod and its node."""

    pod_uid: str
    namespace: str
    pod_name: str
    group_uid: str
    node: str
    request: Mapping[str, int] = field(default_factory=dict)
    """What the pod takes, in canonical units; used while no event has told of the pod."""


_RECORD = text("""
    insert into bind (pod_uid, namespace, pod_name, group_uid, node, request, epoch)
    select pod_uid, namespace, pod_name, group_uid, node, request, :epoch
      from jsonb_to_recordset(cast(:rows as jsonb))
           as r(pod_uid text, namespace text, pod_name text, group_uid text, node text,
                request jsonb)
    on conflict (pod_uid) do update
       set node = excluded.node, epoch = excluded.epoch, state = 'open',
           request = excluded.request, created_at = clock_timestamp()
     where bind.state <> 'bound'
""")


def record(session: Session, lease: str, *, epoch: int, binds: Sequence[BindRecord]) -> None:
    """Write placements down, in one statement, if ``epoch`` still leads.

    Raises:
        PreconditionError: it does not; the transaction ends and nothing may be sent.
    """
    leases.hold(session, lease, epoch=epoch)
    if not binds:
        return
    rows = [
        {
            "pod_uid": bind.pod_uid,
            "namespace": bind.namespace,
            "pod_name": bind.pod_name,
            "group_uid": bind.group_uid,
            "node": bind.node,
            "request": dict(bind.request),
        }
        for bind in binds
    ]
    batch.later(session, _RECORD, {"rows": orjson.dumps(rows).decode(), "epoch": epoch})


_SETTLE = text("update bind set state = :state where pod_uid = any(:uids)")


def settle(session: Session, *, bound: Sequence[str], failed: Sequence[str]) -> None:
    """Note what Kubernetes answered for these pods; the transaction holds the lease."""
    for uids, state in ((bound, "bound"), (failed, "failed")):
        if uids:
            batch.later(session, _SETTLE, {"state": state, "uids": list(uids)})


def open_records(session: Session) -> Sequence[BindRecord]:
    """Placements whose answer nobody noted: a new leader counts them as used."""
    rows = session.execute(
        text(
            "select pod_uid, namespace, pod_name, group_uid, node, request from bind"
            " where state = 'open' order by created_at, pod_uid"
        )
    )
    return [BindRecord(*row) for row in rows]


def recent_records(session: Session, *, within: timedelta) -> Sequence[BindRecord]:
    """Placements that Kubernetes took lately: watches may not have told everybody of them."""
    rows = session.execute(
        text(
            "select pod_uid, namespace, pod_name, group_uid, node, request from bind"
            " where state = 'bound' and created_at > clock_timestamp() - :within"
            " order by created_at, pod_uid"
        ),
        {"within": within},
    )
    return [BindRecord(*row) for row in rows]


def prune(session: Session, *, older_than: timedelta, limit: int = 10_000) -> int:
    """Forget settled placements that are old; return how many."""
    done = session.execute(
        text(
            "delete from bind where pod_uid in (select pod_uid from bind"
            " where state <> 'open' and created_at < clock_timestamp() - :age limit :limit)"
        ),
        {"age": older_than, "limit": limit},
    )
    return int(done.rowcount)  # type: ignore[attr-defined]

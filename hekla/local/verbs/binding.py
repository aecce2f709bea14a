"""Bindings: a pod gets its node."""

from __future__ import annotations

from hekla.domain.errors import Violation
from hekla.local.kinds import errors, metadata
from hekla.local.kinds.registry import PODS, Object
from hekla.local.rules import pods
from hekla.local.verbs import drafts
from hekla.local.verbs.objects import Objects
from hekla.local.verbs.steps import CREATE, Step, Writing


def binding(
    objects: Objects, address: tuple[str, str], body: object, *, dry_run: bool = False
) -> Writing[Object]:
    """Give a pod its node, in steps; the result is the binding.

    Raises:
        ApiError: there is no such pod, or it has a node already.
    """
    namespace, name = address
    shape = drafts.shaped(PODS, body, kind_name="Binding")
    drafts.check_namespace(PODS, namespace, shape["metadata"])
    if shape["metadata"].setdefault("name", name) != name:
        raise errors.bad_request(
            f"name in URL does not match name in Binding object: {name}, "
            f"{shape['metadata']['name']}"
        )
    step = Step(
        mutating=True,
        operation=CREATE,
        kind=PODS,
        namespace=namespace,
        name=name,
        subresource="binding",
        value=shape,
        old=None,
        dry_run=dry_run,
    )
    shape = drafts.shaped(PODS, (yield step), kind_name="Binding")
    yield step._replace(mutating=False, value=shape)
    target = shape.get("target")
    node = target.get("name") if isinstance(target, dict) else None
    if not isinstance(node, str) or not node:
        raise errors.invalid(PODS, name, [Violation("target.name", "Required value")])
    old = objects.latest(PODS, namespace, name)
    wanted_uid = shape["metadata"].get("uid")
    if wanted_uid and wanted_uid != old.uid:
        raise errors.conflict(PODS, name, drafts.uid_mismatch(wanted_uid, old.uid))
    pod = old.object()
    if old.deleting:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
        raise errors.conflict(PODS, name, why)
    present = pod["spec"].get("nodeName")
    if present:
        why = f'pod {name} is already assigned to node "{present}"'
        raise errors.conflict(PODS, name, why)
    annotations = shape["metadata"].get("annotations") or {}
    fresh = pods.bound(pod, node, annotations, now=objects.now())
    drafts.refuse(PODS, name, metadata.violations(PODS, fresh["metadata"]))
    objects.put(PODS, fresh, dry_run=dry_run)
    return shape

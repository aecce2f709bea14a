"""The verbs of the API on any kind: create, read, replace, patch, delete, bind.

The HTTP side and the node agents use the same ones; the former in steps (``steps``), so that
admission can be asked in between. A write returns at once, and lasts when ``storage.settled()``
returns.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Any, Final

from hekla.domain.errors import Violation
from hekla.local.kinds import errors, metadata
from hekla.local.kinds.registry import NAMESPACES, SERVICE_ACCOUNTS, Kind, Object
from hekla.local.patches.standard import MalformedError, Patch, UnfitError
from hekla.local.rules.table import rules_of
from hekla.local.storage.memory import Entry, Storage
from hekla.local.storage.selection import Selection
from hekla.local.verbs import admission, bodies, deletions, drafts, steps
from hekla.local.verbs.admission import DEFAULT_ACCOUNT
from hekla.local.verbs.deletions import Deleted, Deletion
from hekla.local.verbs.drafts import Told
from hekla.local.verbs.steps import Step, Writing

_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, so that no words come out
_GENERATED_LENGTH: Final = 253 - 5
_ATTEMPTS: Final = 5
"""How often a patch is made again because others wrote meanwhile."""


class Objects:
    """The verbs."""

    def __init__(self, storage: Storage, *, now: Callable[[], datetime]) -> None:
        self._storage = storage
        self._now = self.now = now

    def get(self, kind: Kind, namespace: str, name: str) -> Entry:
        """The object of that name.

        Raises:
            ApiError: there is none.
        """
        entry = self._storage.get(kind, namespace, name)
        if entry is None:
            raise errors.not_found(kind, name)
        return entry

    def select(self, selection: Selection) -> list[Entry]:
        """The objects meant, in the order of their names."""
        kind = selection.kind
        if selection.name is not None and selection.namespace is not None:
            one = self._storage.get(kind, selection.namespace, selection.name)
            return [one] if one is not None and selection.matches(one) else []
        found = [
            entry
            for entry in self._storage.select(kind, selection.namespace)
            if selection.matches(entry)
        ]
        found.sort(key=lambda entry: (entry.namespace, entry.name))
        return found

    def create(
        self, kind: Kind, namespace: str, body: object, *, dry_run: bool = False
    ) -> Entry:
        """Make a new object; see ``creating``."""
        return steps.at_once(self.creating(kind, namespace, body, dry_run=dry_run))

    def creating(
        self,
        kind: Kind,
        namespace: str,
        body: object,
        *,
        dry_run: bool = False,
        told: Told = drafts.ignored,
    ) -> Writing[Entry]:
        """Make a new object, in steps; ``told`` hears of fields that are not known.

        Raises:
            ApiError: its name is taken, its namespace is missing, or it breaks rules.
        """
        if kind.closed:
            raise errors.ApiError(405, "MethodNotAllowed", kind.closed)
        value = drafts.shaped(kind, body)
        given = value["metadata"]
        drafts.check_namespace(kind, namespace, given)
        if given.get("resourceVersion"):
            raise errors.bad_request(
                "resourceVersion should not be set on objects to be created"
            )
        if kind.namespaced:
            name = given.get("name") or given.get("generateName", "")
            admission.check_namespace(self._storage, kind, namespace, name)
        told(drafts.complete(kind, value))
        admission.admit(self._storage, kind, value)
        step = Step(
            mutating=True,
            operation=steps.CREATE,
            kind=kind,
            namespace=namespace,
            name=given.get("name", ""),
            subresource="",
            value=value,
            old=None,
            dry_run=dry_run,
        )
        changed = yield step
        if changed is not value:
            value = drafts.shaped(kind, changed)
            given = value["metadata"]
            drafts.check_namespace(kind, namespace, given)
            drafts.complete(kind, value)
            admission.admit(self._storage, kind, value)
        if not given.get("name") and given.get("generateName"):
            given["name"] = self._generated_name(kind, namespace, given["generateName"])
            drafts.complete(kind, value)  # which may tell of the name
        if not given.get("name"):
            why = "Required value: name or generateName is required"
            raise errors.invalid(kind, "", [Violation("metadata.name", why)])
        name = given["name"]
        value["metadata"] = metadata.created(
            kind, given, uid=str(uuid.uuid4()), now=self._now()
        )
        if kind.status or kind.schema is None:
            value.pop("status", None)
        drafts.check_new(kind, value)
        yield step._replace(mutating=False, name=name, value=value)
        if kind.namespaced:
            admission.check_namespace(self._storage, kind, namespace, name)
        if self._storage.latest(kind, namespace, name) is not None:
            raise errors.already_exists(kind, name)
        status = rules_of(kind.resource).first_status(value)
        if status is not None:
            value["status"] = status
        made = self.put(kind, value, dry_run=dry_run)
        if kind is NAMESPACES and not dry_run:
            self.add_account(name)
        return made

    def add_account(self, namespace: str) -> None:
        """Make the service account that pods of a namespace get unless they name another."""
        if self._storage.latest(SERVICE_ACCOUNTS, namespace, DEFAULT_ACCOUNT) is None:
            body = {"metadata": {"name": DEFAULT_ACCOUNT}}
            self.create(SERVICE_ACCOUNTS, namespace, body)

    def replacing(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        body: object,
        *,
        status: bool = False,
        dry_run: bool = False,
        told: Told = drafts.ignored,
    ) -> Writing[Entry]:
        """Put ``body`` in the place of the object, or its status in the place of the status.

        Raises:
            ApiError: it is missing, was changed by somebody else, or breaks rules.
        """
        given = drafts.shaped(kind, body)["metadata"]
        drafts.check_namespace(kind, namespace, given)
        if given.get("name", name) != name:
            raise errors.bad_request(
                f"the name of the object ({given['name']}) "
                f"does not match the name on the URL ({name})"
            )
        if kind.needs_version and not given.get("resourceVersion"):
            why = "Invalid value: 0: must be specified for an update"
            raise errors.invalid(kind, name, [Violation("metadata.resourceVersion", why)])
        return self._updating(
            (kind, namespace, name),
            lambda _: drafts.shaped(kind, body),
            status=status,
            dry_run=dry_run,
            told=told,
        )

    def patching(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Patch,
        *,
        status: bool = False,
        dry_run: bool = False,
        told: Told = drafts.ignored,
    ) -> Writing[Entry]:
        """Apply a patch to the object, or to its status.

        Raises:
            ApiError: as ``replacing``, or the patch does not fit the object.
        """

        def change(old: Entry) -> Object:
            try:
                changed = patch.apply(drafts.read(old, kind))
            except MalformedError as error:
                raise errors.bad_request(f"the patch cannot be read: {error}") from error
            except UnfitError as error:
                raise errors.unfit(str(error)) from error
            bodies.check_depth(changed)
            value = drafts.shaped(kind, changed)
            if value["metadata"].get("name") != name:
                raise errors.bad_request("metadata.name may not be patched")
            drafts.check_namespace(kind, namespace, value["metadata"])
            return value

        return self._updating(
            (kind, namespace, name), change, status=status, dry_run=dry_run, told=told
        )

    def write_status(
        self, kind: Kind, namespace: str, name: str, *, uid: str, status: Object
    ) -> Entry | None:
        """Set the status of that very object, for a node agent; None if it is gone."""
        old = self._storage.latest(kind, namespace, name)
        if old is None or old.uid != uid:
            return None
        value = old.object()
        if value.get("status") == status:
            return old
        value["status"] = status
        return self._storage.put(kind, value)

    def deleting(
        self, kind: Kind, namespace: str, name: str, how: Deletion
    ) -> Writing[Deleted]:
        """Delete the object, in steps; see ``delete``."""
        old = self._meant(kind, namespace, name, how)
        yield Step(
            mutating=False,
            operation=steps.DELETE,
            kind=kind,
            namespace=namespace,
            name=name,
            subresource="",
            value=None,
            old=old,
            dry_run=how.dry_run,
        )
        return self.delete(kind, namespace, name, how)

    def delete(self, kind: Kind, namespace: str, name: str, how: Deletion) -> Deleted:
        """Delete the object, or mark it if a grace period or finalizers hold it.

        Raises:
            ApiError: it is missing or not the one that was meant.
        """
        old = self._meant(kind, namespace, name, how)
        before = old.object()
        value = deletions.marked(kind, before, how, now=self._now())
        gone = deletions.may_go(kind, value)
        if value["metadata"] == before["metadata"] and not gone:
            return Deleted(old, gone)
        if how.dry_run:
            return Deleted(self._storage.imagine(kind, value), gone)
        if gone:
            value["metadata"] = before["metadata"]
            return Deleted(self._storage.remove(kind, value), gone=True)
        return Deleted(self._storage.put(kind, value), gone=False)

    def release(self, entry: Entry, finalizer: str) -> None:
        """Take a finalizer off an object, which goes with the last one if it is deleted."""
        self._edit(entry, "finalizers", lambda each: each != finalizer)

    def disown(self, entry: Entry, kept: Collection[str]) -> None:
        """Take the references to owners whose uids are not ``kept`` off an object."""
        self._edit(entry, "ownerReferences", lambda each: each["uid"] in kept)

    def _edit(self, entry: Entry, field: str, stays: Callable[[Any], bool]) -> None:
        old = self._storage.latest(entry.kind, entry.namespace, entry.name)
        if old is None or old.uid != entry.uid:
            return
        before, value = old.object(), old.object()
        left = [each for each in value["metadata"].pop(field, []) if stays(each)]
        if left:
            value["metadata"][field] = left
        self._put_changed(old, before, value, dry_run=False)

    def delete_all(self, entries: Iterable[Entry], how: Deletion) -> list[Entry]:
        """Delete those of ``entries`` that are still there."""
        return [
            self.delete(entry.kind, entry.namespace, entry.name, how).entry
            for entry in entries
            if self._storage.latest(entry.kind, entry.namespace, entry.name) is not None
        ]

    def _meant(self, kind: Kind, namespace: str, name: str, how: Deletion) -> Entry:
        """What a delete is about, if its preconditions hold."""
        old = self.latest(kind, namespace, name)
        deletions.check(old, how)
        return old

    def _updating(
        self,
        address: tuple[Kind, str, str],
        change: Callable[[Entry], Object],
        *,
        status: bool,
        dry_run: bool,
        told: Told,
    ) -> Writing[Entry]:
        """Make of the object what ``change`` makes of it.

        If others wrote while admission was asked, it is made again, of what they wrote.
        """
        kind, namespace, name = address
        for _ in range(_ATTEMPTS):
            old = self.latest(*address)
            before, wanted = drafts.read(old, kind), change(old)
            drafts.check_same(old, wanted["metadata"])
            value = drafts.prepared(kind, before, wanted, status=status)
            told(drafts.complete(kind, value))
            step = Step(
                mutating=True,
                operation=steps.UPDATE,
                kind=kind,
                namespace=namespace,
                name=name,
                subresource="status" if status else "",
                value=value,
                old=old,
                dry_run=dry_run,
            )
            changed = yield step
            if changed is not value:
                wanted = drafts.shaped(kind, changed)
                value = drafts.prepared(kind, before, wanted, status=status)
                drafts.complete(kind, value)
            drafts.count_change(kind, before, value)
            drafts.check_update(kind, before, value, status=status)
            yield step._replace(mutating=False, value=value)
            if self._storage.latest(*address) is old:
                return self._put_changed(old, before, value, dry_run=dry_run)
        raise errors.modified(kind, name)

    def _put_changed(
        self, old: Entry, before: Object, value: Object, *, dry_run: bool
    ) -> Entry:
        if value == before:
            return old
        if deletions.may_go(old.kind, value) and not dry_run:
            return self._storage.remove(old.kind, value)
        return self.put(old.kind, value, dry_run=dry_run)

    def put(self, kind: Kind, value: Object, *, dry_run: bool) -> Entry:
        """Store ``value`` unless it is only a dry run."""
        if dry_run:
            return self._storage.imagine(kind, value)
        return self._storage.put(kind, value)

    def latest(self, kind: Kind, namespace: str, name: str) -> Entry:
        """The object of that name as the next writer must see it.

        Raises:
            ApiError: there is none.
        """
        entry = self._storage.latest(kind, namespace, name)
        if entry is None:
            raise errors.not_found(kind, name)
        return entry

    def _generated_name(self, kind: Kind, namespace: str, prefix: str) -> str:
        while True:
            suffix = "".join(secrets.choice(_SUFFIX) for _ in range(5))
            name = prefix[:_GENERATED_LENGTH] + suffix
            if self._storage.latest(kind, namespace, name) is None:
                return name

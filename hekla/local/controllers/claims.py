"""Persistent volume claims: bound to volumes there are, else to new folders of this machine."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from hekla.domain import quantity
from hekla.local.kinds import errors
from hekla.local.kinds.registry import CLAIMS, PODS, STORAGE_CLASSES, VOLUMES, Object
from hekla.local.rules.claims import PROTECTION
from hekla.local.rules.pods import FINISHED
from hekla.local.storage.memory import DELETED, Change, Entry, Storage
from hekla.local.tasks import Tasks
from hekla.local.verbs.admission import DEFAULT_CLASS
from hekla.local.verbs.deletions import Deletion
from hekla.local.verbs.objects import Objects

PROVISIONER: Final = "hekla.io/local-folder"
STANDARD: Final[Object] = {
    "metadata": {"name": "standard", "annotations": {DEFAULT_CLASS: "true"}},
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
}
"""The storage class that every local cluster has."""
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_USES: Final = b'"persistentVolumeClaim"'

log = logging.getLogger(__name__)


class Claims:
    """Binds claims as they come, and cleans up behind those that go."""

    def __init__(self, storage: Storage, objects: Objects, tasks: Tasks, folder: Path) -> None:
        self._storage = storage
        self._objects = objects
        self._tasks = tasks
        self._folder = folder

    def begin(self) -> None:
        """Make the storage class, see to all claims, then to what changes."""
        if self._storage.latest(STORAGE_CLASSES, "", STANDARD["metadata"]["name"]) is None:
            self._objects.create(STORAGE_CLASSES, "", STANDARD)
        for entry in list(self._storage.select(CLAIMS)):
            self._see(entry)
        self._storage.listen(self._hear)

    def _hear(self, changes: Sequence[Change]) -> None:
        for change in changes:
            entry, gone = change.entry, change.type == DELETED
            try:
                if entry.kind is CLAIMS and gone:
                    self._reclaim(entry)
                elif entry.kind is CLAIMS:
                    self._see(entry)
                elif entry.kind in {VOLUMES, STORAGE_CLASSES} and not gone:
                    self._see_waiting()
                elif entry.kind is VOLUMES:
                    self._see_lost(entry)
                elif entry.kind is PODS and (gone or _over(entry)) and _USES in entry.raw:
                    self._see_unused(entry)
            except errors.ApiError as error:  # somebody was faster; the next change says more
                log.warning("claim not seen to", extra={"error": str(error)})

    def _see_waiting(self) -> None:
        for entry in list(self._storage.select(CLAIMS)):
            self._see(entry)

    def _see_unused(self, pod: Entry) -> None:
        for name in _claims_of(pod.object()):
            entry = self._storage.latest(CLAIMS, pod.namespace, name)
            if entry is not None and entry.deleting:
                self._see(entry)

    def _see(self, heard: Entry) -> None:
        entry = self._storage.latest(CLAIMS, heard.namespace, heard.name)
        if entry is None:
            return
        if entry.deleting:
            if not self._used(entry):
                self._objects.release(entry, PROTECTION)
            return
        claim = entry.object()
        if claim.get("status", {}).get("phase") != "Pending":
            return
        volume = self._volume_for(claim)
        if volume is not None:
            self._bind(entry, claim, volume)

    def _used(self, claim: Entry) -> bool:
        for entry in self._storage.select(PODS, claim.namespace):
            latest = self._storage.latest(PODS, entry.namespace, entry.name)
            if (
                latest is not None
                and _USES in latest.raw
                and not _over(latest)
                and claim.name in _claims_of(latest.object())
            ):
                return True
        return False

    def _volume_for(self, claim: Object) -> Entry | None:
        """The volume that the claim names, else one that fits, else a new one; or none yet."""
        wanted = claim["spec"].get("volumeName")
        for entry in sorted(self._storage.select(VOLUMES), key=lambda entry: entry.name):
            latest = self._storage.latest(VOLUMES, "", entry.name)
            if latest is None or latest.deleting or (wanted and entry.name != wanted):
                continue
            if _fits(latest.object(), claim, named=bool(wanted)):
                return latest
        if wanted:
            return None
        class_name = claim["spec"].get("storageClassName", "")
        found = self._storage.latest(STORAGE_CLASSES, "", class_name) if class_name else None
        if found is None or found.object().get("provisioner") != PROVISIONER:
            return None
        return self._provision(claim, found.object())

    def _provision(self, claim: Object, storage_class: Object) -> Entry:
        name = f"pvc-{claim['metadata']['uid']}"
        present = self._storage.latest(VOLUMES, "", name)
        if present is not None:
            return present
        body = {
            "metadata": {"name": name, "annotations": {_PROVISIONED_BY: PROVISIONER}},
            "spec": {
                "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
                "accessModes": claim["spec"]["accessModes"],
                "storageClassName": storage_class["metadata"]["name"],
                "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
                "hostPath": {"path": str(self._folder / name), "type": "DirectoryOrCreate"},
                "claimRef": _reference(claim),
            },
        }
        return self._objects.create(VOLUMES, "", body)

    def _bind(self, entry: Entry, claim: Object, volume: Entry) -> None:
        value = volume.object()
        value["spec"]["claimRef"] = _reference(claim)
        value["status"] = {**value.get("status", {}), "phase": "Bound"}
        self._storage.put(VOLUMES, value)
        claim["spec"]["volumeName"] = volume.name
        claim["status"] = {
            "phase": "Bound",
            "accessModes": value["spec"]["accessModes"],
            "capacity": value["spec"]["capacity"],
        }
        self._storage.put(CLAIMS, claim)
        log.info("claim bound", extra={"claim": entry.name, "volume": volume.name})

    def _reclaim(self, claim: Entry) -> None:
        for entry in list(self._storage.select(VOLUMES)):
            latest = self._storage.latest(VOLUMES, "", entry.name)
            value = latest.object() if latest is not None else {"spec": {}}
            if latest is None or value["spec"].get("claimRef", {}).get("uid") != claim.uid:
                continue
            if value["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                self._objects.delete(VOLUMES, "", entry.name, Deletion(uid=entry.uid))
                self._remove_folder(value)
            else:
                value["status"] = {**value.get("status", {}), "phase": "Released"}
                self._storage.put(VOLUMES, value)

    def _remove_folder(self, volume: Object) -> None:
        folder = self._folder / volume["metadata"]["name"]
        ours = volume["metadata"].get("annotations", {}).get(_PROVISIONED_BY) == PROVISIONER
        if ours and volume["spec"].get("hostPath", {}).get("path") == str(folder):
            self._tasks.spawn(_removed(folder), name=f"remove {folder.name}")

    def _see_lost(self, volume: Entry) -> None:
        for entry in list(self._storage.select(CLAIMS)):
            claim = entry.object()
            if claim["spec"].get("volumeName") == volume.name and not entry.deleting:
                lost = {**claim.get("status", {}), "phase": "Lost"}
                self._objects.write_status(
                    CLAIMS, entry.namespace, entry.name, uid=entry.uid, status=lost
                )


def _fits(volume: Object, claim: Object, *, named: bool) -> bool:
    spec, wanted, metadata = volume["spec"], claim["spec"], claim["metadata"]
    reference = spec.get("claimRef")
    if reference:
        same = all(reference.get(key) == metadata[key] for key in ("namespace", "name"))
        if not same or reference.get("uid", metadata["uid"]) != metadata["uid"]:
            return False
    elif volume.get("status", {}).get("phase") != "Available":
        return False
    if spec.get("storageClassName", "") != wanted.get("storageClassName", ""):
        return named and "storageClassName" not in wanted
    has = quantity.parse(spec["capacity"]["storage"])
    asked = quantity.parse(wanted["resources"]["requests"]["storage"])
    return has >= asked and set(wanted["accessModes"]) <= set(spec["accessModes"])


def _reference(claim: Object) -> Object:
    metadata = claim["metadata"]
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.name,
        **{key: metadata[key] for key in ("namespace", "name", "uid")},
    }


def _claims_of(pod: Object) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or []:
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]


def _over(pod: Entry) -> bool:
    return pod.field("status.phase") in FINISHED


async def _removed(folder: Path) -> None:
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

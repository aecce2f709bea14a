"""Follows what is registered, and asks the webhooks that a write concerns.

Those that may change the object are asked one after the other, in the order of their
configurations' names; those that only judge are asked together.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hekla.local.kinds import errors
from hekla.local.kinds.registry import (
    MUTATING_WEBHOOKS,
    NAMESPACES,
    VALIDATING_WEBHOOKS,
    Kind,
    Object,
    Registry,
)
from hekla.local.patches.standard import JsonPatch, UnfitError
from hekla.local.storage.memory import Change, Entry, Storage
from hekla.local.verbs import bodies
from hekla.local.verbs.steps import DELETE, Step
from hekla.local.webhooks import hooks, reviews
from hekla.local.webhooks.hooks import Call, Hook
from hekla.local.webhooks.reviews import Answer, CallError, UnreadableError

if TYPE_CHECKING:
    from hekla.local.webhooks.caller import Caller

_CONFIGURATIONS: Final = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)

log = logging.getLogger(__name__)


class _Asked(NamedTuple):
    """The webhooks with a rule about one operation."""

    mutating: tuple[Call, ...]
    validating: tuple[Call, ...]


class Webhooks:
    """The webhooks that are registered now."""

    def __init__(self, storage: Storage, registry: Registry) -> None:
        self._storage = storage
        self._registry = registry
        self._revision = registry.revision
        self._hooks: tuple[Hook, ...] = ()
        self._asked: dict[tuple[str, str, str, str], _Asked] = {}
        self._caller: Caller | None = None

    def begin(self) -> None:
        """Read what is registered, and follow it."""
        self._read()
        self._storage.listen(self._hear)

    @property
    def caller(self) -> Caller:
        """Who calls them."""
        if self._caller is None:
            # What it stands on is slow to load, and most clusters have no webhooks.
            from hekla.local.webhooks.caller import Caller, finder  # noqa: PLC0415

            self._caller = Caller(finder(self._storage))
        return self._caller

    @property
    def any(self) -> bool:
        """Whether there is one at all."""
        return bool(self._hooks)

    def about(self, kind: Kind, operation: str, subresource: str) -> _Asked:
        """Those that have a rule about an operation."""
        if self._revision != self._registry.revision:
            self._revision = self._registry.revision
            self._asked.clear()
        key = (kind.resource, kind.version, operation, subresource)
        found = self._asked.get(key)
        if found is None:
            others = self._registry.versions(kind.resource)
            versions = [kind, *(each for each in others if each is not kind)]
            chosen = hooks.concerned(self._hooks, versions, operation, subresource)
            found = self._asked[key] = _Asked(
                tuple(call for call in chosen if call.hook.mutates),
                tuple(call for call in chosen if not call.hook.mutates),
            )
        return found

    def selected(self, chosen: Sequence[Call], step: Step) -> list[Call]:
        """Those of ``chosen`` whose selectors mean the object."""
        labels = hooks.own_labels(step)
        if labels is None and step.kind.namespaced:
            namespace = self._storage.latest(NAMESPACES, "", step.namespace)
            labels = {} if namespace is None else namespace.labels
        return [call for call in chosen if call.hook.selects(step, labels)]

    async def close(self) -> None:
        """Close the connections."""
        if self._caller is not None:
            await self._caller.close()

    def _hear(self, changes: Sequence[Change]) -> None:
        if any(change.entry.kind in _CONFIGURATIONS for change in changes):
            self._read()

    def _read(self) -> None:
        found: list[Hook] = []
        for kind in _CONFIGURATIONS:
            entries = sorted(self._storage.select(kind), key=lambda entry: entry.name)
            for entry in entries:
                found += _hooks_of(entry)
        self._hooks = tuple(found)
        self._asked.clear()
        if self._caller is not None:
            self._caller.forget({hook.bundle for hook in found})


def _hooks_of(entry: Entry) -> list[Hook]:
    try:
        return list(hooks.hooks_of(entry.kind, entry.object()))
    except Exception:  # one that an older version stored unchecked must not silence the others
        log.exception("registration not understood", extra={"name": entry.name})
        return []


class Reviews:
    """Asks on behalf of one request."""

    def __init__(
        self,
        webhooks: Webhooks,
        options: Callable[[str], Mapping[str, Any]],
        warnings: list[str],
    ) -> None:
        """``options`` gives the request's own by operation; ``warnings`` takes what is said."""
        self._webhooks = webhooks
        self._options = options
        self._warnings = warnings

    def concerns(self, step: Step) -> bool:
        """See ``steps.Review``."""
        found = self._webhooks.about(step.kind, step.operation, step.subresource)
        if step.operation == DELETE:
            return bool(found.mutating or found.validating)
        return bool(found.mutating if step.mutating else found.validating)

    async def review(self, step: Step) -> Object | None:
        """See ``steps.Review``."""
        found = self._webhooks.about(step.kind, step.operation, step.subresource)
        value = step.value
        if step.mutating or step.operation == DELETE:
            value = await self._mutated(found.mutating, step)
        if not step.mutating:
            await self._judged(found.validating, step)
        return value

    async def _mutated(self, chosen: Sequence[Call], step: Step) -> Object | None:
        before: set[str] = set()
        """Those that are to be asked again if somebody after them changes the object."""
        again: set[str] = set()
        for turn in range(2):
            for call in chosen:
                identity = f"{call.hook.configuration}/{call.hook.name}"
                if turn and identity not in again:
                    continue
                if not self._webhooks.selected([call], step):
                    continue
                answer = await self._ask(call, step)
                if answer is not None and answer.patch is not None:
                    changed = _patched(call, step, answer.patch)
                    if changed != step.value:
                        step = step._replace(value=changed)
                        again |= before
                        before.clear()
                if call.hook.reinvoked:
                    before.add(identity)
            if not again:
                break
        return step.value

    async def _judged(self, chosen: Sequence[Call], step: Step) -> None:
        asked = self._webhooks.selected(chosen, step)
        verdicts = await asyncio.gather(
            *(self._ask(call, step) for call in asked), return_exceptions=True
        )
        for verdict in verdicts:
            if isinstance(verdict, BaseException):
                raise verdict

    async def _ask(self, call: Call, step: Step) -> Answer | None:
        """What the webhook says, if it allows; None if it says nothing and need not.

        Raises:
            ApiError: it refuses, or says nothing and must.
        """
        hook = call.hook
        if step.dry_run and not hook.dry_runs:
            why = f'admission webhook "{hook.name}" does not support dry run'
            raise errors.bad_request(why)
        uid = str(uuid.uuid4())
        question = reviews.question(step, call.kind, uid, self._options(step.operation))
        try:
            body = await self._webhooks.caller.ask(hook, question)
            answer = reviews.read(body, uid, mutates=hook.mutates)
        except (CallError, UnreadableError) as error:
            why = str(error)
            if isinstance(error, UnreadableError):
                why = f"received invalid webhook response: {why}"
            if hook.ignores_failure:
                log.warning("webhook passed over", extra={"webhook": hook.name, "error": why})
                return None
            raise reviews.failure(hook.name, why) from error
        self._warnings += [text for text in answer.warnings if text not in self._warnings]
        if not answer.allowed:
            raise reviews.denial(hook.name, answer.status)
        return answer


def _patched(call: Call, step: Step, patch: JsonPatch) -> Object:
    hook, value = call.hook, step.value
    if value is None:
        raise errors.internal(
            f'admission webhook "{hook.name}" attempted to modify the object, '
            "which is not supported for this operation"
        )
    try:
        changed = patch.apply(reviews.seen(value, step, call.kind))
    except UnfitError as error:
        why = f'the patch of webhook "{hook.name}" does not fit: {error}'
        raise errors.internal(why) from error
    bodies.check_depth(changed)
    if not isinstance(changed, dict):
        raise errors.internal(f'the patch of webhook "{hook.name}" leaves no object')
    if call.kind is not step.kind:
        changed["apiVersion"] = value["apiVersion"]
    return changed

"""``volcano-scheduler.conf``: which actions run, and which plugins are asked, tier by tier.

Files written for Volcano load as they are. A name that Volcano knows and Hekla does not
have yet is left out with a warning; a name that nobody knows is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from hekla.domain.errors import InvalidError, Violation
from services.scheduler.actions import registry as actions
from services.scheduler.arguments import Arguments
from services.scheduler.framework import Action, Enabled, Framework
from services.scheduler.plugins import registry as plugins

DEFAULT: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
"""What Volcano's Helm chart installs."""

FLAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "enableJobOrder": ("job_order",),
    "enableHierarchy": (),
    "enableJobReady": ("job_ready",),
    "enableJobPipelined": ("job_pipelined",),
    "enableTaskOrder": ("task_order",),
    "enablePreemptable": ("preemptable",),
    "enableReclaimable": ("reclaimable",),
    "enablePreemptive": ("preemptive",),
    "enableQueueOrder": ("queue_order",),
    "enabledClusterOrder": (),
    "enablePredicate": ("filters",),
    "enableBestNode": (),
    "enableNodeOrder": ("scorers",),
    "enableTargetJob": (),
    "enableReservedNodes": (),
    "enableJobEnqueued": ("job_enqueueable",),
    "enabledVictim": ("victim_tasks",),
    "enableJobStarving": ("job_starving",),
    "enabledOverused": ("overused",),
    "enabledAllocatable": ("allocatable",),
    "enabledHyperNodeOrder": ("hypernode_order",),
    "enabledSubJobReady": ("subjob_ready",),
    "enabledSubJobPipelined": ("subjob_pipelined",),
    "enabledSubJobOrder": ("subjob_order",),
    "enabledHyperNodeGradient": ("hypernode_gradient",),
}
"""The extension points that each flag of a plugin switches, all on unless it is false."""

_TOP: Final = frozenset({"actions", "tiers", "configurations", "metrics"})


@dataclass(frozen=True, slots=True)
class Policy:
    """A configuration that loaded."""

    framework: Framework
    actions: tuple[str, ...]
    """Names of the actions that run, in order."""
    tiers: tuple[tuple[str, ...], ...]
    """Names of the plugins that are asked, by tier."""
    warnings: tuple[str, ...]
    """What was left out."""


def load(text: str = DEFAULT) -> Policy:
    """The policy that a configuration describes.

    Raises:
        InvalidError: naming everything that is wrong with it.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        message = " ".join(str(error).split())
        raise InvalidError(f"scheduler configuration is not YAML: {message}") from error
    reader = _Reader()
    policy = reader.read(document)
    if reader.violations:
        raise InvalidError.of(reader.violations)
    return policy


class _Reader:
    """Reads one document; collects what is wrong with it, and what is left out."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self._warnings: list[str] = []

    def read(self, document: Any) -> Policy:
        if not isinstance(document, dict):
            self._violate("", "must be a mapping with the keys actions and tiers")
            document = {}
        for key in document:
            if key not in _TOP:
                self._violate(str(key), f"unknown key, known are {_listed(_TOP)}")
        steps = self._actions(document.get("actions"))
        tiers = self._tiers(document.get("tiers"))
        self._configurations(document.get("configurations"))
        return Policy(
            framework=Framework(tiers, steps),
            actions=tuple(step.name for step in steps),
            tiers=tuple(tuple(each.plugin.name for each in tier) for tier in tiers),
            warnings=tuple(self._warnings),
        )

    def _actions(self, text: Any) -> list[Action]:
        if not isinstance(text, str):
            self._violate("actions", f"must be names separated by commas, is {text!r}")
            return []
        found = []
        for name in (part.strip() for part in text.split(",")):
            if name in actions.ACTIONS:
                found.append(actions.ACTIONS[name]())
            elif name in actions.NOT_BUILT:
                self._warnings.append(f"action {name} is not built yet and left out")
            else:
                known = _listed({*actions.ACTIONS, *actions.NOT_BUILT})
                self._violate("actions", f"unknown action {name!r}, known are {known}")
        return found

    def _tiers(self, tiers: Any) -> list[list[Enabled]]:
        # A name in several tiers is one plugin; flags count where they stand.
        known: dict[str, Enabled] = {}
        return [
            [
                enabled
                for place, option in enumerate(self._list(tier, f"tiers[{at}]", "plugins"))
                if (enabled := self._plugin(option, f"tiers[{at}].plugins[{place}]", known))
            ]
            for at, tier in enumerate(self._sequence(tiers, "tiers"))
        ]

    def _plugin(self, option: Any, path: str, known: dict[str, Enabled]) -> Enabled | None:
        if not isinstance(option, dict) or not isinstance(option.get("name"), str):
            self._violate(path, "must be a mapping with a name")
            return None
        name = option["name"]
        off = self._off(option, path)
        if name in known:
            return Enabled(known[name].plugin, off)
        if name not in plugins.PLUGINS:
            if name in plugins.NOT_BUILT:
                self._warnings.append(f"plugin {name} is not built yet and left out")
            else:
                names = _listed({*plugins.PLUGINS, *plugins.NOT_BUILT})
                self._violate(path, f"unknown plugin {name!r}, known are {names}")
            return None
        values = option.get("arguments")
        if values is not None and not isinstance(values, dict):
            self._violate(f"{path}.arguments", "must be a mapping")
            values = None
        arguments = Arguments(values or {}, f"{path}.arguments")
        plugin = plugins.PLUGINS[name](arguments)
        known[name] = Enabled(plugin, off)
        self.violations += arguments.violations
        self._warnings += [
            f"plugin {name} has no argument {argument}" for argument in arguments.unknown
        ]
        self._warnings += [
            f"plugin {name} does not heed {part} yet"
            for part in getattr(plugin, "not_built", ())
        ]
        return known[name]

    def _off(self, option: Mapping[str, Any], path: str) -> frozenset[str]:
        off: set[str] = set()
        for key, value in option.items():
            if key in {"name", "arguments"}:
                continue
            if key not in FLAGS:
                names = _listed({"name", "arguments", *FLAGS})
                self._violate(f"{path}.{key}", f"unknown key, known are {names}")
            elif not isinstance(value, bool):
                self._violate(f"{path}.{key}", f"must be true or false, is {value!r}")
            elif not value:
                off.update(FLAGS[key])
        return frozenset(off)

    def _configurations(self, configurations: Any) -> None:
        for at, one in enumerate(self._sequence(configurations or [], "configurations")):
            path = f"configurations[{at}]"
            if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                self._violate(path, "must be a mapping with a name")
            elif one["name"] not in {*actions.ACTIONS, *actions.NOT_BUILT}:
                known = _listed({*actions.ACTIONS, *actions.NOT_BUILT})
                self._violate(path, f"unknown action {one['name']!r}, known are {known}")

    def _list(self, holder: Any, path: str, key: str) -> Sequence[Any]:
        if not isinstance(holder, dict):
            self._violate(path, f"must be a mapping with the key {key}")
            return []
        return self._sequence(holder.get(key), f"{path}.{key}")

    def _sequence(self, value: Any, path: str) -> Sequence[Any]:
        if isinstance(value, list):
            return value
        self._violate(path, "must be a list")
        return []

    def _violate(self, path: str, message: str) -> None:
        self.violations.append(Violation(path, message))


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))

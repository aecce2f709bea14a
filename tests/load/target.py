"""What the load goes to: a stack in a home folder, with all that can be learnt of it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hekla.domain import resources
from tests.support.stack import Stack


@dataclass(frozen=True, slots=True)
class Target:
    """A running stack."""

    home: Path

    @property
    def stack(self) -> Stack:
        """Its commands."""
        return Stack(self.home)

    @property
    def controller(self) -> str:
        """Where jobs are submitted."""
        return self.stack.endpoint("controller")

    @property
    def database_url(self) -> str:
        """Where the history is."""
        return self.stack.endpoint("database_url")

    def parts(self) -> Mapping[str, Iterable[int]]:
        """The main processes of every part that runs, by its name."""
        return {
            name: [unit.pid]
            for name, unit in self.stack.units().items()
            if unit.pid is not None
        }

    def nodes(self) -> dict[str, dict[str, int]]:
        """What each node of its Kubernetes has."""
        url = f"{self.stack.endpoint('kubernetes')}/api/v1/nodes"
        with urllib.request.urlopen(url, timeout=30) as answer:
            items = json.load(answer)["items"]
        return {
            item["metadata"]["name"]: resources.parse_list(item["status"]["allocatable"])
            for item in items
        }


def home_of(endpoints: Path) -> Target:
    """The target whose ``endpoints.json`` that is, or whose folder."""
    return Target(endpoints.parent if endpoints.is_file() else endpoints)

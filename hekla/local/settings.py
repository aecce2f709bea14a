"""What can be set about the local cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal

from hekla.config import setting

PREFIX: Final = "HEKLA_LOCAL"
NOTE: Final = "note"
"""The file in the home that tells users what they should know of how containers run."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The local cluster: a stand-in for Kubernetes on one machine, on loopback only."""

    home: Path
    """The folder that holds its state, its kubeconfig and its pods."""
    port: int = setting(0, minimum=0)
    """The port to serve on; 0 takes a free one."""
    nodes: int = setting(3, minimum=0)
    """How many nodes it has: node-0, node-1 and so on."""
    node_cpu: str = "16"
    """CPUs of a node, accounted but not enforced, as all that a node has."""
    node_memory: str = "64Gi"
    """Memory of a node."""
    node_gpus: int = setting(8, minimum=0)
    """nvidia.com/gpu of a node."""
    node_pods: int = setting(110, minimum=0)
    """How many pods a node takes."""
    runtime: Literal["process", "simulate"] = "process"
    """Whether containers run as processes or only pretend to."""
    sandboxes: bool = True
    """Whether containers get sandboxes by bubblewrap, where it runs; else plain processes."""
    start_delay: timedelta = timedelta()
    """How long a simulated container takes to start."""
    simulate_duration: timedelta = timedelta(seconds=1)
    """How long a simulated container runs without the annotation hekla.io/simulate-duration."""
    watch_delay: timedelta = timedelta()
    """Fault mode: how much later than a write the watches tell of it."""
    watch_history: int = setting(10_000, minimum=1)
    """How many changes of each kind a watch can go back."""
    crds: bool = False
    """Whether our custom resources are defined in it; once they are they stay."""
    hekla_home: Path | None = setting(None, env="HEKLA_HOME")  # noqa: RUF009 - a field
    """What containers see as HEKLA_HOME, by which their processes are found; else home."""

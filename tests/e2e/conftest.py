"""Stacks that the tests of this folder share: each leaves what it made, or takes it away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kubectl import OURS, Kubectl
from tests.support.stack import Stack, running_stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Two nodes of four CPUs; jobs come by gRPC only."""
    home = tmp_path_factory.mktemp("shared") / "home"
    with running_stack(home, "--nodes", "2", "--node-cpu", "4") as found:
        yield found


@pytest.fixture(scope="session")
def open_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Two nodes of eight CPUs; jobs come as custom resources too."""
    home = tmp_path_factory.mktemp("open") / "home"
    with running_stack(home, "--nodes", "2", "--node-cpu", "8", crds=True) as found:
        yield found


@pytest.fixture(scope="session")
def kubectl(open_stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """The package's kubectl, at that stack."""
    return Kubectl(OURS, open_stack.home / "kubeconfig", tmp_path_factory.mktemp("kubectl"))

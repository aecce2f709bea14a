"""A stack that the tests of this folder share: each leaves what it made, or takes it away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stack import Stack, running_stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Two nodes of four CPUs."""
    home = tmp_path_factory.mktemp("shared") / "home"
    with running_stack(home, "--nodes", "2", "--node-cpu", "4") as found:
        yield found

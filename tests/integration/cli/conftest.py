"""A controller in memory on a real socket, and the client for it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from hekla.client import Client
from tests.support.controller import Controller, controller_at


@pytest.fixture
def served() -> Controller:
    return Controller()


@pytest.fixture
def address(served: Controller, tmp_path: Path) -> Iterator[str]:
    with controller_at(f"unix:{tmp_path}/s", served) as found:
        yield found


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with Client(addresses={"controller": address}, patience=timedelta(seconds=1)) as found:
        yield found

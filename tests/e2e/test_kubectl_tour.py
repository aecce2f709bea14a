"""The kubectl tour of the README does what the README says."""

from __future__ import annotations

import pytest

from tests.support.documents import ROOT
from tests.support.kubectl import Kubectl
from tests.support.stack import Stack
from tests.support.waiting import wait_until
from tests.support.walk import walk


def test_the_tour_prints_what_the_readme_says(
    open_stack: Stack, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    # What a test before this one deleted may be on its way out, and shows in lists.
    wait_until(lambda: not open_stack.phases(), timeout=60, what="earlier jobs gone")

    walk("README.md", {**open_stack.environ, **kubectl.environ})

    kubectl.ok("delete", "queue", "test")

"""docs/operating.md speaks of what there is: metrics, settings, log messages, files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from prometheus_client import Counter, Gauge, Histogram

from hekla import config
from hekla.telemetry import metrics
from services.controller.config import ControllerConfig
from services.flow.config import FlowConfig
from services.scheduler.config import SchedulerConfig
from services.webhook.config import WebhookConfig

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "operating.md").read_text()
SOURCES: Final = "\n".join(
    path.read_text() for top in ("hekla", "services") for path in (ROOT / top).rglob("*.py")
)
CONFIGS: Final = {
    "WEBHOOK": WebhookConfig,
    "CONTROLLER": ControllerConfig,
    "SCHEDULER": SchedulerConfig,
    "FLOW": FlowConfig,
}


def names() -> list[str]:
    found = [
        each
        for value in vars(metrics).values()
        for each in (value.values() if isinstance(value, dict) else [value])
        if isinstance(each, Counter | Gauge | Histogram)
    ]
    return sorted({metric._name for metric in found})


@pytest.mark.parametrize("name", names())
def test_every_metric_is_explained(name: str) -> None:
    shortened = re.sub("^volcano_queue_pod_group", "\u2026", name)

    assert f"`{name}`" in PAGE or f"`{shortened}`" in PAGE


def test_no_metric_is_explained_that_is_not_there() -> None:
    told = set(re.findall(r"`((?:hekla|volcano)_[a-z_]+)`", PAGE))

    assert told - set(names()) <= {"hekla_postgres"}, "the volume of compose"


def test_settings_are_those_that_are_read() -> None:
    known = {
        option.variable
        for name, cls in CONFIGS.items()
        for option in config.options(cls, f"HEKLA_{name}")
    }
    told = set(re.findall(r"`(HEKLA_[A-Z_]+)`", PAGE))
    endings = set(re.findall(r"`\u2026(_[A-Z_]+)`", PAGE))

    assert told - known <= {"HEKLA_HOME"}
    assert not [end for end in endings if not any(name.endswith(end) for name in known)]


def test_log_messages_are_those_that_are_written() -> None:
    table = PAGE.partition("| message | means |")[2].partition("\n\n")[0]
    told = [text for row in table.splitlines() for text in re.findall(r"`([^`]+)`", row[:60])]

    assert len(told) > 10
    assert not [text for text in told if f'"{text}"' not in SOURCES]


@pytest.mark.parametrize("page", ["docs/operating.md", "CONTRIBUTING.md", "README.md"])
def test_files_that_are_named_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    code = re.findall(r"`([\w./-]+/[\w./-]*)`", text)
    links = [link for link in re.findall(r"\]\(([^)#:]+)\)", text) if "://" not in link]

    tops = {path.name for path in ROOT.iterdir()}
    missing = [
        name for name in code if name.split("/")[0] in tops and not (ROOT / name).exists()
    ]
    missing += [link for link in links if not ((ROOT / page).parent / link).exists()]
    assert missing == []

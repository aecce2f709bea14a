"""What operators see of a process: its log lines and its figures."""

from __future__ import annotations

from hekla.telemetry.logs import configure_logging

__all__ = ["configure_logging"]

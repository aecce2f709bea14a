"""Logs as JSON, one event a line.

Whatever a call passes as ``extra`` becomes fields of the line, so messages are constant
texts to search for and values go aside: ``log.info("pass", extra={"job": key})``.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
_OURS: Final = frozenset({"ts", "level", "logger", "service", "message", "exception"})


class JsonFormatter(logging.Formatter):
    """Turns a record into one line of JSON, whatever the record holds."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line: dict[str, Any] = {
            "ts": _instant(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "service": self._service,
            "message": record.getMessage(),
        }
        for key, value in vars(record).items():
            if key not in _STANDARD:
                line[f"{key}_" if key in _OURS else key] = value
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _dumps(line)


def _instant(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _dumps(line: Mapping[str, Any]) -> str:
    try:
        return json.dumps(line, default=str, allow_nan=False)
    except (ValueError, TypeError):  # NaN, a cycle, keys that are no text
        return json.dumps({key: str(value) for key, value in line.items()})


def configure_logging(service: str, level: str = "INFO") -> None:
    """Send everything that is logged, warned of or uncaught to stderr as JSON lines.

    ``level`` holds for our own loggers; of what we stand on, only warnings are of use.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(service))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for ours in ("hekla", "services"):
        logging.getLogger(ours).setLevel(level)
    logging.captureWarnings(capture=True)
    sys.excepthook = lambda kind, error, trace: logging.getLogger("hekla").critical(
        "uncaught", exc_info=(kind, error, trace)
    )
    threading.excepthook = _thread_died


def _thread_died(died: threading.ExceptHookArgs) -> None:
    if died.exc_value is not None and died.exc_type is not SystemExit:
        logging.getLogger("hekla").critical(
            "thread died",
            exc_info=(died.exc_type, died.exc_value, died.exc_traceback),
            extra={"thread": died.thread.name if died.thread else None},
        )

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from hekla.local.stack.endpoints import Home
from hekla.local.stack.readiness import last_words, why_not

UNIT = {
    "name": "flow",
    "state": "RUNNING",
    "once": False,
    "last_exit": "exit code 3",
    "retry_in": 4.0,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("first\nlast line\n\n", "last line"),
        ('{"message": "starting"}\n', "starting"),
        ('{"message": "uncaught", "exception": "x\\nOSError"}', "uncaught: OSError"),
        ('{"cut off', '{"cut off'),
        ("x" * 20000 + "\nend", "end"),
        ('["a list"]', '["a list"]'),
    ],
)  # fmt: skip
def test_the_last_words_of_a_log_are_for_people(
    tmp_path: Path, text: str, expected: str
) -> None:
    log = tmp_path / "log"
    log.write_text(text)

    assert last_words(log) == expected


def test_a_log_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert last_words(tmp_path / "nothing") == ""


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"state": "STOPPED"}, "stopped by request"),
        ({"state": "BACKOFF"}, "exit code 3, starts again in 4 s"),
        ({"state": "WAITING"}, "waiting"),
        ({"state": "DONE"}, None),
        ({"state": "RUNNING", "once": True}, "under way"),
    ],
)
def test_a_unit_that_does_not_run_is_not_ready(
    tmp_path: Path, changes: dict[str, Any], expected: str | None
) -> None:
    assert why_not({**UNIT, **changes}, Home(tmp_path), {}) == expected


def test_a_service_says_itself_why_it_is_not_ready(tmp_path: Path) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"ready": false, "reasons": {"database": "is away"}}'
            self.send_response(503)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        problem = why_not(UNIT, Home(tmp_path), {"flow-http": server.server_port})
        thread.join()

    assert problem == "database: is away"


def test_a_service_that_does_not_listen_is_not_ready(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    assert why_not(UNIT, Home(tmp_path), {"flow-http": port}) == "does not answer yet"

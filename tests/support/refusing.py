"""Programs that refuse to start, called in this process: another one takes a second."""

from __future__ import annotations

import gc
import io
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def refusal(main: Callable[[], object], *argv: str, **environ: str) -> str:
    """The one line that ``main`` ends with, and exit code 1, by these flags and variables."""
    out, err = io.StringIO(), io.StringIO()
    with as_a_process(argv, environ), redirect_stdout(out), redirect_stderr(err):
        try:
            code = main()
        except SystemExit as ended:
            code = ended.code
    assert code == 1
    assert out.getvalue() == ""
    [line] = [line for line in err.getvalue().splitlines() if not line.startswith("{")]
    return line


@contextmanager
def as_a_process(argv: Sequence[str], environ: Mapping[str, str]) -> Iterator[None]:
    """These flags and variables, none else of ours; what a program sets here is undone."""
    before, words = dict(os.environ), sys.argv
    root, threshold = logging.getLogger(), gc.get_threshold()
    handlers, level = list(root.handlers), root.level
    handling = {number: signal.getsignal(number) for number in _SIGNALS}
    for name in [name for name in before if name.startswith("HEKLA_")]:
        del os.environ[name]
    os.environ.update(environ)
    sys.argv = ["program", *argv]
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        sys.argv = words
        root.handlers[:] = handlers
        root.setLevel(level)
        gc.set_threshold(*threshold)
        for number, handler in handling.items():
            signal.signal(number, handler)

"""``python -m hekla.rpc.probe URL``: exit code 0 if it answers 200, for health checks.

Images have no shell and no curl that a health check could use.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from typing import Final

TIMEOUT_SECONDS: Final = 5.0


def problem(url: str) -> str | None:
    """What is wrong at ``url``, or None."""
    if not url.startswith("http://"):
        return f"{url!r} is not http://host:port/path"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT_SECONDS) as answer:
            return None if answer.status == 200 else f"{url}: {answer.status}"
    except urllib.error.HTTPError as error:
        with error:
            told = error.read(2_000).decode(errors="replace").strip()
        return f"{url}: {error.code} {told}"
    except (OSError, ValueError) as error:
        return f"{url}: {error}"


def main() -> None:
    """Probe what the command line names."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m hekla.rpc.probe URL")
    found = problem(sys.argv[1])
    if found is not None:
        sys.exit(found)


if __name__ == "__main__":
    main()

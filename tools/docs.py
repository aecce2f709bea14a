"""``make docs``: write the pages that are drawn from code; ``--check`` finds stale ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tools import draw_admission, draw_config, draw_flow_states, draw_pod_fields, draw_states

ROOT: Final = Path(__file__).resolve().parent.parent

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "docs/admission.md": draw_admission.draw,
    "docs/configuration.md": draw_config.draw,
    "services/webhook/rules/pods/fields.py": draw_pod_fields.draw,
    "docs/states.md": lambda: f"{draw_states.draw()}\n{draw_flow_states.draw()}",
}


def stale() -> list[str]:
    """Pages that are not what the code says now."""
    return [
        page
        for page, draw in PAGES.items()
        if not (ROOT / page).is_file() or (ROOT / page).read_text() != draw()
    ]


def main() -> None:
    """Write every page, or check them."""
    if sys.argv[1:] == ["--check"]:
        if found := stale():
            sys.exit(f"{', '.join(found)} is not what the code says (run `make docs`)")
        return
    for page, draw in PAGES.items():
        (ROOT / page).write_text(draw())


if __name__ == "__main__":
    main()

"""Where the services are: variables first, then what ``hekla up`` wrote down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hekla.domain.errors import InvalidError, UnavailableError

HOME_VARIABLE: Final = "HEKLA_HOME"
SERVICES: Final = ("webhook", "controller", "scheduler", "flow")


def home(environ: Mapping[str, str]) -> Path:
    """The folder of everything local: ``HEKLA_HOME``, else ``~/.hekla``."""
    named = environ.get(HOME_VARIABLE)
    try:
        return Path(named).expanduser().absolute() if named else Path.home() / ".hekla"
    except RuntimeError as error:
        raise InvalidError(f"no home folder; set {HOME_VARIABLE}") from error


def load(folder: Path) -> Mapping[str, object] | None:
    """What ``endpoints.json`` in ``folder`` says, or None where there is none.

    Raises:
        InvalidError: the file is not what ``hekla up`` writes.
    """
    path = folder / "endpoints.json"
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InvalidError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InvalidError(f"{path} is not JSON; 'hekla up' writes it anew") from error
    if not isinstance(found, dict):
        raise InvalidError(f"{path} is not an object; 'hekla up' writes it anew")
    return found


def address(service: str, environ: Mapping[str, str]) -> str:
    """Where ``service`` listens: ``HEKLA_<SERVICE>``, else the file of ``hekla up``.

    Raises:
        UnavailableError: neither says.
    """
    variable = f"HEKLA_{service.upper()}"
    named = environ.get(variable)
    if named:
        return named
    folder = home(environ)
    found = (load(folder) or {}).get(service)
    if not isinstance(found, str):
        raise UnavailableError(
            f"no {service} known in {folder}: run 'hekla up', or set {variable} to its address"
        )
    return found

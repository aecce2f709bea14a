"""How names, label keys and label values are written.

Each check returns what is wrong in words that follow the value, or None.
"""

from __future__ import annotations

import re
from typing import Final

SUBDOMAIN: Final = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

SUBDOMAIN_LENGTH: Final = 253
LABEL_LENGTH: Final = 63


def subdomain_error(text: str) -> str | None:
    """What keeps ``text`` from being a DNS subdomain, as most object names must be."""
    if len(text) > SUBDOMAIN_LENGTH:
        return f"must be no more than {SUBDOMAIN_LENGTH} characters, has {len(text)}"
    if SUBDOMAIN.fullmatch(text) is None:
        return (
            "must consist of lower case letters, digits, '-' and '.', "
            "and begin and end with a letter or digit"
        )
    return None


def label_error(text: str) -> str | None:
    """What keeps ``text`` from being a DNS label: a name without dots."""
    if len(text) > LABEL_LENGTH:
        return f"must be no more than {LABEL_LENGTH} characters, has {len(text)}"
    if LABEL.fullmatch(text) is None:
        return (
            "must consist of lower case letters, digits and '-', "
            "and begin and end with a letter or digit"
        )
    return None


def qualified_name_error(text: str) -> str | None:
    """What keeps ``text`` from being a key of labels or annotations: ``[prefix/]name``."""
    prefix, slash, name = text.rpartition("/")
    if slash:
        if not prefix:
            return "must have a prefix before '/'"
        wrong = subdomain_error(prefix)
        if wrong is not None:
            return f"must have a prefix that is a DNS subdomain: the prefix {wrong}"
    if not name:
        return "must not be empty"
    return _qualified_part_error(name)


def label_value_error(text: str) -> str | None:
    """What keeps ``text`` from being the value of a label; the empty text is one."""
    return _qualified_part_error(text) if text else None


def _qualified_part_error(text: str) -> str | None:
    if len(text) > LABEL_LENGTH:
        return f"must be no more than {LABEL_LENGTH} characters, has {len(text)}"
    if _QUALIFIED.fullmatch(text) is None:
        return (
            "must consist of letters, digits, '-', '_' and '.', "
            "and begin and end with a letter or digit"
        )
    return None

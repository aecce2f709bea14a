"""What lint found, as text for people, JSON for scripts and SARIF for code review."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from services.webhook.lint.engine import MANIFEST, Finding, Outcome
from services.webhook.rules.rulebook import RULES

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_text(outcome: Outcome) -> str:
    """One line a finding, then what was not checked, then how many there are."""
    return "\n".join(_lines(outcome)) + "\n"


def _lines(outcome: Outcome) -> Iterator[str]:
    for finding in outcome.findings:
        of = f"{finding.object}: " if finding.object else ""
        what = "" if finding.refuses else "warning: "
        place = f"{finding.file}:{finding.line}"
        yield f"{place}: {what}{of}{finding.violation} [{finding.violation.rule}]"
    for each in outcome.unchecked:
        yield f"not checked: {each}"
    refused = sum(finding.refuses for finding in outcome.findings)
    warned = len(outcome.findings) - refused
    yield f"{outcome.objects} objects, {refused} violations, {warned} warnings"


def as_json(outcome: Outcome) -> str:
    """One object."""
    value = {
        "objects": outcome.objects,
        "violations": [_plain(each) for each in outcome.findings if each.refuses],
        "warnings": [_plain(each) for each in outcome.findings if not each.refuses],
        "unchecked": outcome.unchecked,
    }
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _plain(finding: Finding) -> Mapping[str, Any]:
    of = finding.violation
    return {
        "file": finding.file,
        "line": finding.line,
        "object": finding.object,
        "path": of.path,
        "message": of.message,
        "value": of.value,
        "rule": of.rule,
        "passing": of.passing,
    }


def as_sarif(outcome: Outcome) -> str:
    """A log of SARIF 2.1.0."""
    rules = {rule.name: rule.says for rule in RULES}
    rules[MANIFEST] = "A document can be read as an object of its kind."
    used = sorted({finding.violation.rule for finding in outcome.findings})
    run = {
        "tool": {
            "driver": {
                "name": "hekla lint",
                "rules": [
                    {"id": name, "shortDescription": {"text": rules.get(name, name)}}
                    for name in used
                ],
            }
        },
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": f"not checked: {each}"}}
                    for each in outcome.unchecked
                ],
            }
        ],
        "results": [_result(finding) for finding in outcome.findings],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, indent=2) + "\n"


def _result(finding: Finding) -> Mapping[str, Any]:
    of = f"{finding.object}: " if finding.object else ""
    return {
        "ruleId": finding.violation.rule,
        "level": "error" if finding.refuses else "warning",
        "message": {"text": f"{of}{finding.violation}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": finding.file},
                    "region": {"startLine": finding.line},
                },
                "logicalLocations": [{"fullyQualifiedName": finding.violation.path}],
            }
        ],
    }


FORMATS: Final[Mapping[str, Callable[[Outcome], str]]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
}

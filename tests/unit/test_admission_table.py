"""The table of admission: through the rules, through lint, and as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.webhook.rules.places import value_at
from services.webhook.rules.rulebook import RULES
from tests.support.admission_doors import Door, by_lint, judged, library
from tests.support.admission_rows import Row
from tests.support.admission_table import ROWS
from tests.support.admission_verdicts import check

ROOT = Path(__file__).resolve().parents[2]
DOORS: dict[str, Door] = {"library": library, "lint": by_lint}


@pytest.mark.parametrize("door", DOORS)
def test_each_row_is_judged_as_the_table_says(door: str) -> None:
    wrong = [text for row in ROWS if (text := check(row, DOORS[door](row)))]

    assert wrong == []


def test_rows_are_told_apart() -> None:
    assert len({row.source for row in ROWS}) == len(ROWS)


def test_each_row_that_warns_names_its_rule() -> None:
    for row in ROWS:
        rules = {note.rule for note in judged(row).notes}
        assert rules >= set(row.warned), row.source


def test_each_difference_is_a_row_of_the_page() -> None:
    page = (ROOT / "docs/differences.md").read_text()

    assert [row.source for row in ROWS if row.differs not in page] == []


def test_no_rule_can_be_turned_off_unseen() -> None:
    """Without any one rule at least one row is judged otherwise."""
    unseen = [rule.name for rule in RULES if not _is_missed(rule.name)]

    assert unseen == []


def _is_missed(name: str) -> bool:
    off = frozenset({name})
    [kinds] = [rule.kinds for rule in RULES if rule.name == name]
    telling = (row for row in ROWS if row.object["kind"] in kinds)
    return any(_differs(row, off) for row in telling if row.refuse or row.warned)


def _differs(row: Row, off: frozenset[str]) -> bool:
    if row.warned and not {note.rule for note in judged(row, off=off).notes} >= set(row.warned):
        return True
    return row.refuse is not None and bool(check(row, library(row, off=off)))


def test_a_value_is_found_where_its_path_leads() -> None:
    value = {"a": [{"b.c/d": {"e": 5}}], "x": "y"}

    assert value_at(value, "a[0][b.c/d].e") == "5"
    assert value_at(value, "x") == '"y"'
    assert [value_at(value, path) for path in ("z", "a[1]", "a.b", "x[0]", "a[")] == [""] * 5

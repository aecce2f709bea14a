"""The table of admission, whole."""

from __future__ import annotations

from typing import Final

from tests.support import admission_table_jobs as jobs, admission_table_others as others

ROWS: Final = tuple(row for part in (*jobs.PARTS, *others.PARTS) for row in part())

"""The schema's history: one line of revisions, expand, then migrate, then contract."""

"""Objects as clients get them: as they are, as metadata only, or as tables.

``forms`` says what a form is, ``paging`` cuts lists into pages. ``tables`` are what ``kubectl``
shows: ``columns`` finds those of a kind, by its definition or among ``built_in_columns`` and
``pod_columns``; ``cells`` is what all are made of.
"""

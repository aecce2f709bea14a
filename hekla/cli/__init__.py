"""The ``hekla`` command: it sees only what a user sees."""

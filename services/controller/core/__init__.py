"""Decisions about jobs: pure functions of what was observed. No clock, no I/O."""

"""Postgres, and the only code that speaks SQL: tables, queries by noun, feed, work, leases."""

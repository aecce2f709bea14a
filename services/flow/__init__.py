"""Runs graphs of jobs."""

"""Drives jobs, pod groups and queues through their lives."""

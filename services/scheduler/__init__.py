"""Decides which pod runs on which node, whole gangs at a time."""

"""The service-level load suite: ``python -m tests.load --help``."""

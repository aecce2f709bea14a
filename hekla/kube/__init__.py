"""Kubernetes, and the only code that talks to an API server."""

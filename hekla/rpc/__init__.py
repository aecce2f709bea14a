"""gRPC plumbing: server, channels, errors, health."""

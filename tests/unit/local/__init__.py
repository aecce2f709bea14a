"""What the local cluster and its supervisor decide."""

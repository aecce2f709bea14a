"""``python -m services.webhook lint``: the rules without a server, for manifests in files."""

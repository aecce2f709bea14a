"""The RPCs of the flow service."""

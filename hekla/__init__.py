"""What the four services stand on, and what users install. Imports no service."""

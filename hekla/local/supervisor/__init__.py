"""Runs a set of processes and starts again what dies. Knows nothing of what they do.

``unit`` decides, from what happened and the time, whether to start, stop or wait; ``loop``
does it; ``control`` is the socket that commands come in by; ``processes`` finds and signals.
"""

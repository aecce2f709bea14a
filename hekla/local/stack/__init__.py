"""What ``hekla up`` starts, and how.

``up`` brings a stack up and down again, as its ``plan`` says, which ``supervise`` carries
out; ``readiness`` and ``second_door`` tell whether it works. ``endpoints`` is the home folder
and its ports, ``postgres`` the embedded server, ``database`` its processes; ``demo`` is
``make demo``.
"""

"""The steps of a session. Pure: each moves the session it is given, nothing else."""

"""How properties are searched here."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is no reason to fail, and a slow example none to stop looking.
settings.register_profile(
    "hekla", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50
)
settings.load_profile("hekla")

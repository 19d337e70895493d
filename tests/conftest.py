"""How property tests run: few examples in the fast tier; slow tests take the profile "long"."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

CALM = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile("fast", max_examples=10, deadline=None, suppress_health_check=CALM)
settings.register_profile("long", max_examples=200, deadline=None, suppress_health_check=CALM)
settings.load_profile("fast")

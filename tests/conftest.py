"""How property tests run: few examples in the fast tier; slow tests take the profile "long".

Examples are the same on every run, so that a change is judged by what it changes. With ROBAGG_TEST_SEED set they are
new ones each time: so look for what nobody thought of.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

CALM = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
SAME = "ROBAGG_TEST_SEED" not in os.environ

settings.register_profile("fast", max_examples=10, derandomize=SAME, deadline=None, suppress_health_check=CALM)
settings.register_profile("long", max_examples=200, derandomize=SAME, deadline=None, suppress_health_check=CALM)
settings.load_profile("fast")

"""The same examples on every run, with HYPOTHESIS_PROFILE=quick (``make unit``) fewer of them.

With HYPOTHESIS_PROFILE=explore there are more and new ones, shown as they were found.
"""

import os

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,  # the machine may be busy
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.register_profile(
    "explore",
    settings.get_profile("repeatable"),
    derandomize=False,
    max_examples=3000,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
settings.register_profile("quick", settings.get_profile("repeatable"), max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

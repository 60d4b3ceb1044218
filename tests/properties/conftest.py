"""The same examples on every run, with HYPOTHESIS_PROFILE=quick (``make unit``) fewer of them.

With QUOTAWARD_LONG=1 there are two and a half times as many, with HYPOTHESIS_PROFILE=explore many more and new ones,
shown as they were found.
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
settings.register_profile("usual", settings.get_profile("repeatable"), max_examples=40)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "repeatable" if os.environ.get("QUOTAWARD_LONG") else "usual")
)

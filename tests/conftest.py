"""What every test may ask for: a real Valkey."""

import os

from hypothesis import HealthCheck, settings

os.umask(0o077)  # the files that tests write are private, as a file of keys has to be

pytest_plugins = ["tests.valkey"]

# Machines are shared: how long an example takes says nothing about the code. `make fuzz` looks further than these do.
settings.register_profile("shared", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

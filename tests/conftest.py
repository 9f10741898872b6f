"""Configuration of all tests, and their real Valkey."""

import os

from hypothesis import HealthCheck, settings

# The tests start some hundred processes, which are ready a fifth sooner where the compiled modules are kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

os.umask(0o077)  # files that tests write are private, as key files must be

pytest_plugins = ["tests.valkey"]

# Machines are shared, so the time of an example says nothing about the code. `make fuzz` searches longer.
settings.register_profile("shared", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

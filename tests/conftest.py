"""What every test may ask for: a real Valkey."""

pytest_plugins = ["tests.valkey"]

"""What every test may ask for: a real Valkey."""

import os

os.umask(0o077)  # the files that tests write are private, as a file of keys has to be

pytest_plugins = ["tests.valkey"]

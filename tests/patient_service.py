"""`python -m tests.patient_service`: the service, which gives a store that is well the time that a busy machine takes.

In production a store that takes longer than a tenth of a second is down for a while, and each process works alone. What
tests of several processes assert is not to depend on that.
"""

import sys
from functools import partial

from app.__main__ import main as run
from app.main import service

STORE_TIMEOUT = 20.0
"""Seconds in which a store answers that is well, on a machine however busy."""

service.create = partial(service.create, store_timeout=STORE_TIMEOUT)

if __name__ == "__main__":
    sys.exit(run())

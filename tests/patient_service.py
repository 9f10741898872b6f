"""`python -m tests.patient_service`: the service with a longer timeout for the store, for busy machines.

In production a store that takes longer than a tenth of a second is down for a while, and each process works alone. What
tests of several processes assert is not to depend on that.
"""

import sys
from functools import partial

from app.__main__ import main
from app.main import service

STORE_TIMEOUT = 20.0
"""Seconds within which a healthy store answers, even on a busy machine."""

service.create = partial(service.create, store_timeout=STORE_TIMEOUT)

if __name__ == "__main__":
    sys.exit(main())

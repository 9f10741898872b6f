"""`python -m robots_decisions`: the command `robots-decisions`."""

import sys

from robots_decisions.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

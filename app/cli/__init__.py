"""What `python -m app` can do, a module each: `add` says how it is called, and `run` gives the exit code."""

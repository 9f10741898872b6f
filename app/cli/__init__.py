"""The commands of `python -m app`, one module each: `add` declares the arguments, `run` returns the exit code."""

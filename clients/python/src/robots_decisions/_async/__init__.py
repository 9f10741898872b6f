"""The asynchronous half. scripts/generate.py makes the other one, `_sync`, from it."""

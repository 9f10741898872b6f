"""The synchronous half, which scripts/generate.py makes from `_async`."""

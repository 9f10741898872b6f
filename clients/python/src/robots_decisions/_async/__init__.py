"""The asynchronous half. scripts/generate.py makes the other one, `_sync`, and the modules for httpx2, from it."""

"""ASGI middleware: access log, API keys, limits on bodies, caching headers."""

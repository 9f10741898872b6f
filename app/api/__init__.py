"""The HTTP API: routes, JSON schemas, middleware, and errors as problem+json (RFC 9457)."""

"""The HTTP API: routes, middleware, and errors as problem+json (RFC 9457)."""

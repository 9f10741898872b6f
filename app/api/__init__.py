"""The HTTP face: routes, the shapes of the JSON, and errors as problem+json (RFC 9457)."""

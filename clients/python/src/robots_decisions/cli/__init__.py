"""The command `robots-decisions`, for the extra `cli`. It asks a service, as any crawler does, by AsyncClient."""

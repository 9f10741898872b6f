"""The HTTP server: bounds of a connection, and worker processes, by uvicorn."""

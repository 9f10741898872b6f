"""One module per route or family of routes."""

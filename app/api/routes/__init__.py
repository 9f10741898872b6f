"""One module per route or group of related routes."""

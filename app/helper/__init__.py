"""Helper processes for long work: a hostile file occupies a helper, and never the event loop."""

"""Helper processes for long work: what a hostile file costs, it costs its own helper, not the event loop."""

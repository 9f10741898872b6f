"""The compiled part of the core: reading lines, and matching paths. Everything else is plain Python."""

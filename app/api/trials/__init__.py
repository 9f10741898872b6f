"""Trials: what a pasted file, or a simulated outcome of a fetch, would decide."""

"""Pacing: reserves slots, so that the whole fleet keeps an origin's rate."""

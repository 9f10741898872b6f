"""Pacing: reserves slots, so that the whole fleet keeps a pool's pace."""

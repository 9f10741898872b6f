"""The event loop: background work, turns, slots, single flight, helper processes, garbage collection."""

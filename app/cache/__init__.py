"""The cache of fetched files: in memory, and in Redis for the fleet; freshness is computed at each read."""

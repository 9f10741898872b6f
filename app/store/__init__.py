"""Redis or Valkey: connecting to a server, sentinels or a cluster, guarded calls, and the embedded server."""

"""The way to Redis or Valkey: the engines it may be, short calls to it, and a server of our own."""

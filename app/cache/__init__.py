"""What was fetched, kept: in Redis for the fleet, parsed in process, and worked out afresh at every read."""

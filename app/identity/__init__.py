"""The crawler's identity (Web Bot Auth). The modules that handle keys need the extra `signatures`."""

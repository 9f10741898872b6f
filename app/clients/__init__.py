"""Clients of the service for crawlers: they need nothing of the service itself, and may be copied out of here."""

"""Clients of the service for crawlers; they import nothing else of this project."""

"""The directory of known crawlers: who operates them, and what for; pure."""

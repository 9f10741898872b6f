"""Who may ask, and how much."""

"""What an origin's robots.txt was before, and what changed."""

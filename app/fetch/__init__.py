"""Fetch one robots.txt: redirects, the address guard, limits, one deadline; the result is a fact, not a verdict."""

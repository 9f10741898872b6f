"""Every version of every robots.txt, kept without expiry: for `as_of`, and for audits a year later."""

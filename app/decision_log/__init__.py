"""A log of decisions, for audits: what was decided, by which version of the file, and for whom."""

"""Pages and sitemaps that the service itself reads for its callers."""

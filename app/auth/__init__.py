"""API keys and their quotas."""

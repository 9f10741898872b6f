"""What operators see: metrics, log lines and traces."""

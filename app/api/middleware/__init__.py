"""What a request passes before it reaches its route."""

"""REST, health and metrics."""

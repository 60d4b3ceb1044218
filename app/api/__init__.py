"""What people call: REST, health, metrics."""

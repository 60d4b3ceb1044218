"""Sources of objects."""

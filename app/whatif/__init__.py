"""What would become of the cluster if something about it were changed: tried on a copy."""

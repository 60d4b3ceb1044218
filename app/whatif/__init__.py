"""What-if questions: changes of the cluster that are tried on a copy."""

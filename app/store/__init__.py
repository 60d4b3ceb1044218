"""The picture of the cluster."""

"""Actuators: the only code that writes to the cluster."""

"""Simulations: a copy of a cluster in which time passes."""

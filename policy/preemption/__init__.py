"""Victims: which pods to evict so that a pending pod can run, and which Jobs would fail by that."""

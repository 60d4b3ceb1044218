"""Explanations of why a pod waits: holders, remedies and next steps, for people."""

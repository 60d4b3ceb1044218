"""Listening, connections and their limits."""

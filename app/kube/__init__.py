"""The API server."""

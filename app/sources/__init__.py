"""Where the picture comes from."""

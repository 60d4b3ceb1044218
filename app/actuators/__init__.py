"""The only code that changes the world."""

"""Takes back what was lent: plans for waiting pods, and their victims."""

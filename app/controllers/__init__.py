"""What an extender cannot do, done beside it."""

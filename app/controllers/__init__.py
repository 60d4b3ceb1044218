"""Controllers: what an extender cannot do."""

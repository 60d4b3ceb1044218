"""The state of a cluster as the rules see it, and what is admitted: grants, gangs, gates, budgets, backoff."""

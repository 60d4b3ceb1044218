"""Which pods come next: whose gate is opened, who is woken, and positions in a queue."""

"""Reserved nodes for jobs that starve: which jobs, which nodes, and which pods the scheduler should keep off them."""

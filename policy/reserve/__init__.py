"""Reserved nodes for jobs that starve: which jobs, which nodes, and whom the scheduler should keep off them."""

"""Which nodes could take a pod: the table of nodes, node filters, topology, packing of gangs, scores."""

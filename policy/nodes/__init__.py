"""Placing pods on nodes: the table of nodes, node filters, topology, packing of gangs, scores."""

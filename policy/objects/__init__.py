"""What there is: pods, nodes, groups, jobs, reservations, and quantities. Decoded data, and no rule."""

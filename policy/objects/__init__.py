"""Data of the rules: pods, nodes, groups, jobs, reservations, and quantities. Decoded objects, and no rule."""

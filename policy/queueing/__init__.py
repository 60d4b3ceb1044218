"""The order of waiting pods: gates to open next, refused pods to wake, and positions in a queue."""

"""The store: the state of the cluster, the kinds of objects, and their translation to the objects of the rules."""

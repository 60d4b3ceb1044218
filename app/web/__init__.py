"""The page: what the store holds, for people to look at."""

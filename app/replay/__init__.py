"""Replay: a recorded workload, read from its log, played with our rules, and summed up."""

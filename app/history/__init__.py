"""The events and amounts of the last day, per queue and quota, by the minute."""

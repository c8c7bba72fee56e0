"""The objects with memory: the optimizer, the loop around it, and what they show."""

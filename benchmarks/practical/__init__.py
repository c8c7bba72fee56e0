"""Engineering problems, noise, crashes, mixed spaces and batches, measured beside peers. See `__main__.py`."""

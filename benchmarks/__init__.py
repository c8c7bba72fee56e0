"""Speed, quality and practice, measured beside peers: each module says how to run it."""

"""Speed, quality and practice, measured beside peers: those that are commands say how to run them."""

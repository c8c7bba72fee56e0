"""Numerical building blocks on NumPy and SciPy alone; they know nothing of Gaussian processes."""

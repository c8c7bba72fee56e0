"""The laboratory: problems with known optima."""

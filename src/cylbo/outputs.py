"""What the model sees of the observed values.

A scaling takes all observed values (n,) and returns those the model is fitted to: an increasing affine map, so that
the best point stays the best.
"""

from collections.abc import Callable

import numpy as np

from cylbo.geometry import Array

__all__ = ["Scaling", "raw", "standardized"]

Scaling = Callable[[Array], Array]

LARGEST_SQUARABLE = 1e100  # sums of squares of larger numbers overflow float64 on the way through a likelihood


def raw(y: Array) -> Array:  # (n,) -> (n,)
    """The values as they are, as in the authors' code.

    Differs where the authors' code would overflow: beyond 1e100 all values are divided by the largest magnitude.
    """
    largest = float(np.abs(y).max())
    return y / largest if largest > LARGEST_SQUARABLE else y


def standardized(y: Array) -> Array:  # (n,) -> (n,)
    """Values with mean 0 and standard deviation 1; all zeros if they do not differ."""
    low, high = float(y.min()), float(y.max())
    half_range = 0.5 * high - 0.5 * low  # halves first: high - low may overflow
    if half_range == 0.0:
        return np.zeros_like(y)
    # To [-1, 1] first, so that neither 1e300 nor 1e-300 is ever squared
    scaled = (y - low) / half_range - 1.0 if half_range < 1e300 else y / half_range
    return np.asarray((scaled - scaled.mean()) / scaled.std(ddof=1))

"""What the model sees of the observed values.

A scaling takes all observed values (n,) and returns those the model is fitted to: an increasing affine map, so that
the best point stays the best.
"""

from collections.abc import Callable

import numpy as np

from cylbo.types import Array

__all__ = ["Scaling", "compressed", "from_compressed", "gaps", "in_gaps", "raw", "standardized"]

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


def gaps(y: Array) -> Array:  # (n,) -> (n,)
    """How far each value lies above the lowest, in units of the middle one of those that do; zeros if none does.

    The unit makes the numbers near the best of order 1 whatever the tail does.
    """
    above, half_unit = _halves_above(y)
    return np.asarray(np.minimum(above, half_unit * LARGEST_SQUARABLE) / half_unit)


def in_gaps(number: Array | float, y: Array) -> Array:  # (m,), (n,) -> (m,)
    """Differences of values, standard deviations say, in the unit that `gaps` of these values has."""
    return np.asarray(np.minimum(0.5 * np.asarray(number) / _halves_above(y)[1], LARGEST_SQUARABLE))


def from_compressed(t: Array, log_strength: float, y: Array) -> Array:  # (m,), (n,) -> (m,)
    """Numbers t such as `compressed` makes from the gaps of y, back in the units of y."""
    strength = np.exp(log_strength)
    return np.asarray(y.min() + 2.0 * _halves_above(y)[1] * np.expm1(strength * t) / strength)


def _halves_above(y: Array) -> tuple[Array, float]:  # (n,) -> (n,), ()
    """Half of how far each value lies above the lowest, and the middle one of those that do; 1 if none does."""
    above: Array = 0.5 * y - 0.5 * y.min()  # halves: the range itself may overflow
    positive = above[above > 0.0]
    return above, float(np.median(positive)) if len(positive) else 1.0


def compressed(gap: Array, log_strength: float) -> tuple[Array, Array, float, float]:  # (n,) -> (n,), (n,), (), ()
    """The gaps as t = log(1 + lambda g) / lambda: nearly g where lambda g is small, a logarithm in the tail.

    Also dt / dlog lambda, the log of the Jacobian sum_i log dt_i/dg_i, and its derivative by log lambda.
    """
    strength = np.exp(log_strength)
    stretched = strength * gap
    t = np.log1p(stretched) / strength
    share = stretched / (1.0 + stretched)
    return t, share / strength - t, -float(np.log1p(stretched).sum()), -float(share.sum())

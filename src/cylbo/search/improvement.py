"""Expected improvement and its logarithm, for minimisation, combined over hyperparameter samples.

    mean, variance (s, m) posterior of the latent function   best: the incumbent's value   z = (best - mean) / sd

Each returns its values (m,) and their derivatives by mean and variance (s, m), (s, m), ready for `Posterior.pullback`.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, ndtr

from cylbo.model.gp import Posterior
from cylbo.types import Array

__all__ = ["Acquired", "Acquisition", "expected_improvement", "log_expected_improvement", "log_h"]

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
SQRT_PI_OVER_2 = math.sqrt(0.5 * math.pi)


class Acquired(NamedTuple):
    """Values of an acquisition and how they change with the posterior."""

    value: Array  # (m,)
    mean_bar: Array  # (s, m)
    variance_bar: Array  # (s, m)


# posterior, value of the incumbent -> ...
Acquisition = Callable[[Posterior, float], Acquired]


def expected_improvement(posterior: Posterior, best: float) -> Acquired:
    """Sum over the samples of sd phi(z) + (best - mean) Phi(z), each clamped at 0 from below.

    The sum, not the average, as in the authors' code: their stopping rule of Adam has an absolute part. The closed
    form cancels for z < -6 or so; `log_expected_improvement` does not.
    """
    sd = np.sqrt(posterior.variance)
    gain = best - posterior.mean
    z = gain / sd
    density = np.exp(-0.5 * z * z - LOG_SQRT_2PI)
    chance = ndtr(z)
    value = sd * density + gain * chance
    positive = value > 0
    return Acquired(
        np.where(positive, value, 0.0).sum(0),
        np.where(positive, -chance, 0.0),
        np.where(positive, 0.5 * density / sd, 0.0),
    )


def log_expected_improvement(posterior: Posterior, best: float) -> Acquired:
    """Logarithm of the expected improvement averaged over the samples, exact far into the tail."""
    sd = np.sqrt(posterior.variance)
    z = (best - posterior.mean) / sd
    h, h_slope = log_h(z)
    each = h + np.log(sd)
    total = np.logaddexp.reduce(each, axis=0)  # SciPy's logsumexp takes as long as all the rest of a climb's step
    share = np.exp(each - total)  # (s, m) of each sample in the average
    return Acquired(
        total - math.log(len(each)),
        share * -h_slope / sd,
        share * 0.5 * (1.0 - h_slope * z) / posterior.variance,
    )


def log_h(z: Array) -> tuple[Array, Array]:
    """log(phi(z) + z Phi(z)), the log expected improvement of a standard normal, and its derivative.

    After Ament et al. 2023, Sec. 4.1: above -1 the plain form; below, log phi(z) + log(1 - |z| M) with the Mills ratio
    M = Phi(z) / phi(z) from erfcx; below -50, where that bracket begins to cancel, its asymptotic series
    1/z^2 - 3/z^4 + 15/z^6 - 105/z^8 + 945/z^10. The derivative is Phi / (phi + z Phi) = M / (1 - |z| M).
    """
    near = np.maximum(z, -1.0)
    near_density, near_chance = np.exp(-0.5 * near * near - LOG_SQRT_2PI), ndtr(near)
    near_h = near_density + near * near_chance

    tail = np.minimum(z, -1.0)
    mills = SQRT_PI_OVER_2 * erfcx(tail / -math.sqrt(2.0))
    moderate = np.maximum(tail, -50.0)
    u = 1.0 / (tail * tail)
    series = u * (1.0 + u * (-3.0 + u * (15.0 + u * (-105.0 + u * 945.0))))
    bracket = np.where(z < -50.0, series, 1.0 + moderate * mills)

    value = np.where(z > -1.0, np.log(near_h), np.log(bracket) - 0.5 * tail * tail - LOG_SQRT_2PI)
    slope = np.where(z > -1.0, near_chance / near_h, mills / bracket)
    return value, slope

"""The most probable hyperparameters of an isotropic Matern-5/2 process on compressed values, by gradient.

    x (n, d) data          y (n,) values in the user's units      t (n,) = compressed values, see `outputs.py`
    R (n, n) correlations + nugget                                theta (3,) = (log l, log eta, log lambda)
    l lengthscale in half-widths of the box    eta noise / amplitude    lambda strength of the compression

The mean m and the amplitude A that make t most likely are known in closed form, so they are no search directions:

    m = 1' R^-1 t / 1' R^-1 1        A = (t - m)' R^-1 (t - m) / n
    log p(y | theta) = -n/2 log A - 1/2 log |R| + sum_i log dt_i/dy_i + constants

The last sum makes likelihoods of different compressions comparable: it is the density of what was observed, y, that
is maximised, so how strongly to compress is learned like a lengthscale (a warped Gaussian process,
Snelson et al. 2004).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from cylbo.geometry import Array
from cylbo.hyper import Hyperparameters
from cylbo.kernel import SQRT5, Matern
from cylbo.outputs import compressed, gaps

__all__ = ["Beliefs", "Evidence", "Fitted", "fit"]

WORST = 1e25  # what a theta costs whose matrix cannot be factorised


@dataclass(frozen=True)
class Beliefs:
    """Normal priors of theta, as (mean, standard deviation), and the box in which it is sought."""

    # Of log(l / sqrt(d)): distances grow with sqrt(d), and so must lengthscales (Hvarfner et al. 2024)
    log_lengthscale: tuple[float, float] = (0.0, 1.0)
    log_nugget: tuple[float, float] = (-9.0, 5.0)  # of noise / amplitude; most objectives are computed, not measured
    log_compression: tuple[float, float] = (-1.0, 1.5)

    log_lengthscale_range: tuple[float, float] = (-5.0, 7.0)  # of log(l / sqrt(d))
    log_nugget_range: tuple[float, float] = (-20.7, 0.0)  # 1e-9 is about what float64 factors of rank n can carry
    log_compression_range: tuple[float, float] = (-5.0, 3.0)


class _Factorised(NamedTuple):
    L: Array  # (n, n) lower Cholesky factor of R
    slope: Array  # dR / dlog l, below the diagonal
    mean: float  # m
    alpha: Array  # (n,) R^-1 (t - m)
    amplitude: float  # A


class Evidence:
    """theta -> minus the log of likelihood times prior, with its gradient.

    Matrices are symmetric, so everything elementwise is done on the entries below the diagonal, in one long row.
    """

    def __init__(self, x: Array, y: Array, beliefs: Beliefs) -> None:
        n, d = x.shape
        self.gaps = gaps(y)
        self._below = np.flatnonzero(np.tri(n, k=-1, dtype=bool).T)  # in LAPACK's column order
        self._scaled_distance = SQRT5 * Matern(np.sqrt(d)).relate(x, x).t.ravel()[self._below]
        shift = np.array([0.5 * np.log(d), 0.0, 0.0])  # lengthscales are measured in sqrt(d)
        priors = np.array([beliefs.log_lengthscale, beliefs.log_nugget, beliefs.log_compression])
        ranges = [beliefs.log_lengthscale_range, beliefs.log_nugget_range, beliefs.log_compression_range]
        self.prior_mean, self.prior_sd = priors[:, 0] + shift, priors[:, 1]
        self.lower, self.upper = np.array(ranges).T + shift
        self.evaluations = 0

    def __call__(self, theta: Array) -> tuple[float, Array]:  # (3,) -> (), (3,)
        """Value and gradient; a constant where R cannot be factorised."""
        self.evaluations += 1
        n = len(self.gaps)
        t, t_slope, log_jacobian, jacobian_slope = compressed(self.gaps, theta[2])
        at = self.factorised(theta, t)
        if at is None:
            return WORST, np.zeros(3)
        L, slope, alpha, amplitude = at.L, at.slope, at.alpha, at.amplitude
        deviation = (theta - self.prior_mean) / self.prior_sd
        value = 0.5 * n * np.log(amplitude) + np.log(L.diagonal()).sum() - log_jacobian + 0.5 * deviation @ deviation

        # The derivative of `value` by R_ij is half of (R^-1 - alpha alpha' / A)_ij
        inverse, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
        by_lengthscale = inverse.T.ravel()[self._below] @ slope - self._pairs(alpha, slope) / amplitude
        by_nugget = 0.5 * np.exp(theta[1]) * (float(np.trace(inverse)) - float(alpha @ alpha) / amplitude)
        by_compression = float(alpha @ t_slope) / amplitude - jacobian_slope
        return float(value), deviation / self.prior_sd + [by_lengthscale, by_nugget, by_compression]

    def factorised(self, theta: Array, t: Array) -> "_Factorised | None":  # (3,), (n,)
        """R's factor, and what follows from it in closed form; None if R is not positive definite."""
        n = len(t)
        # `kernel.matern52` and its slope, here from one exponential: this is where a fit spends its time
        z = self._scaled_distance * np.exp(-theta[0])  # sqrt(5) times distance / l
        decay = np.exp(-z)
        z2_third = z * z / 3.0
        R = np.empty((n, n))
        R.flat[:: n + 1] = 1.0 + np.exp(theta[1])
        z += 1.0
        slope = z2_third * z * decay  # -z d/dz of the line below
        R.ravel()[self._below] = (z + z2_third) * decay  # Matern-5/2
        L, failed = lapack.dpotrf(R.T, lower=1, clean=0, overwrite_a=1)
        if failed or not np.isfinite(L.diagonal()).all():
            return None
        solved, _ = lapack.dpotrs(L, np.stack([t, np.ones(n)], -1), lower=1)
        mean = float(solved[:, 0].sum()) / float(solved[:, 1].sum())
        alpha = solved[:, 0] - mean * solved[:, 1]
        return _Factorised(L, slope, mean, alpha, max(float((t - mean) @ alpha) / n, 1e-300))

    def _pairs(self, alpha: Array, weights: Array) -> float:
        """The sum of alpha_i alpha_j w_ij over the pairs."""
        W = np.zeros((len(alpha), len(alpha)))
        W.ravel()[self._below] = weights
        return float(alpha @ (W @ alpha))


@dataclass(frozen=True, eq=False)
class Fitted:
    """Hyperparameters, what the model is told of the values, and what counts as the best of them."""

    theta: Array  # (3,)
    h: Hyperparameters  # a batch of one
    t: Array  # (n,) compressed values
    best: float  # the lowest posterior mean at the data: with noise, the lowest value is luck
    anew_at: int = 0  # the number of data when a fit last began from several starts


def fit(evidence: Evidence, starts: Iterable[Array], max_iterations: int) -> Fitted:
    """The best theta that L-BFGS-B finds from the starts (3,), each kept within the ranges."""
    if not evidence.gaps.any():  # nothing to learn: all values are equal
        theta = evidence.prior_mean
    else:
        ends = [_descended(evidence, start, max_iterations) for start in starts]
        theta = min(ends, key=lambda end: end[0])[1]
    return _profiled(evidence, theta)


def _descended(evidence: Evidence, start: Array, max_iterations: int) -> tuple[float, Array]:
    result = minimize(
        evidence,
        start,  # which SciPy clips to the bounds
        jac=True,
        method="L-BFGS-B",
        bounds=np.stack([evidence.lower, evidence.upper], -1),
        options={"maxiter": max_iterations, "maxfun": 2 * max_iterations},
    )
    return float(result.fun), np.asarray(result.x)


def _profiled(evidence: Evidence, theta: Array) -> Fitted:
    """The mean and amplitude that belong to theta."""
    lengthscale, nugget = np.exp(theta[:2])
    t = compressed(evidence.gaps, theta[2])[0]
    at = evidence.factorised(theta, t) if evidence.gaps.any() else None
    mean, amplitude, best = 0.0, 1.0, float(t.min())
    if at is not None:
        mean, amplitude, best = at.mean, at.amplitude, float((t - nugget * at.alpha).min())
    h = Hyperparameters(
        amplitude=np.array([amplitude]),
        noise_ratio=np.array([nugget]),
        lengthscale=np.array([lengthscale]),
        mean=np.array([mean]),
    )
    return Fitted(theta, h, t, best)

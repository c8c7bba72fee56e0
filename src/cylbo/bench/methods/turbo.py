"""TuRBO-1: Eriksson, Pearce, Gardner, Turner, Poloczek, "Scalable global optimization via local Bayesian optimization",
NeurIPS 2019 (arXiv 1910.01739), Sec. 2 and its supplement. Written from the paper.

    x (n, d) points of the unit cube   y (n,) standardised values   c (m, d) candidates   L side length of the region
    theta (d + 3,) mean, log signal variance, log noise variance, log length scales l

One trust region, a box about the best point, in which the minimiser of a sample of a local Gaussian process is
evaluated next. It doubles after successes, halves after failures, and is given up for a new start when it is small.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.stats import qmc

from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective
from cylbo.errors import NotPositiveDefiniteError
from cylbo.model.kernel import matern52, matern52_slope
from cylbo.model.scaling import standardized
from cylbo.numerics.linalg import cholesky, inverse_lower, solve_lower
from cylbo.types import Array

__all__ = [
    "METHODS",
    "TrustRegion",
    "box",
    "candidates",
    "covariance",
    "fitted",
    "negative_log_likelihood",
    "posterior_sample",
    "resized",
    "search",
]

# Supplement, "TuRBO details"
INITIAL_LENGTH, SMALLEST_LENGTH, LARGEST_LENGTH = 0.8, 2.0**-7, 1.6
SUCCESS_TOLERANCE = 3
PERTURBED_COORDINATES = 20  # each coordinate of a candidate leaves the best point with probability min(1, 20 / d)
INITIAL_PER_DIMENSION = 2
CANDIDATES_PER_DIMENSION = 100
# Differs from the paper, ceil(d / q) at q = 1: never less than 4, as is widely done, for low dimensions
SMALLEST_FAILURE_TOLERANCE = 4
# Differs from the paper, 5000, beyond d = 20: a joint sample takes 0.2 s at 2000 and grows with the cube
MOST_CANDIDATES = 2000
# Differs from the paper: the initial design may take this share of the budget, which is 2 d points or more there
INITIAL_SHARE = 3

# Bounds of the Gaussian process's hyperparameters (BoTorch's TuRBO tutorial): the objective has no noise
SIGNAL_BOUNDS, NOISE_BOUNDS, LENGTHSCALE_BOUNDS = (0.05, 20.0), (1e-8, 1e-3), (0.005, 4.0)
MEAN_BOUND = 3.0  # the values are standardised
START = {"signal": 1.0, "noise": 1e-4, "lengthscale": 0.5}
# Differs from the authors, who take 50 Adam steps: as many of L-BFGS, which end where the likelihood does not rise
FIT_ITERATIONS = 50
# Added to the diagonal of a covariance, relative to the signal variance, until it can be factorised
NUGGETS = (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)


@dataclass(frozen=True)
class TrustRegion:
    """The size of the region and what happened since it last changed."""

    length: float = INITIAL_LENGTH
    successes: int = 0
    failures: int = 0


def resized(region: TrustRegion, *, improved: bool, failure_tolerance: int) -> TrustRegion:
    """The region after one more evaluation: doubled by 3 successes in a row, halved by too many failures (Sec. 2)."""
    successes = region.successes + 1 if improved else 0
    failures = 0 if improved else region.failures + 1
    if successes == SUCCESS_TOLERANCE:
        return TrustRegion(min(2.0 * region.length, LARGEST_LENGTH))
    if failures == failure_tolerance:
        return TrustRegion(region.length / 2.0)
    return TrustRegion(region.length, successes, failures)


def box(center: Array, lengthscales: Array, length: float) -> tuple[Array, Array]:  # (d,), (d,) -> (d,), (d,)
    """The corners of the region before it is cut to the cube: sides l_i L / (prod_j l_j)^(1/d), volume L^d (Sec. 2)."""
    sides = length * np.exp(np.log(lengthscales) - np.log(lengthscales).mean())
    return center - sides / 2.0, center + sides / 2.0


def candidates(center: Array, low: Array, high: Array, n: int, rng: Generator) -> Array:  # -> (n, d)
    """Sobol points of the box, cut to the cube, with most coordinates put back to the centre's (supplement).

    Each stays with probability min(1, 20 / d), one at least.
    """
    d = len(center)
    low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    # A whole power of two, as Sobol sequences want, and then the first n of it
    sobol = qmc.Sobol(d, scramble=True, rng=rng).random_base2(int(np.ceil(np.log2(n))))[:n]
    moved = rng.random((n, d)) < PERTURBED_COORDINATES / d
    moved[np.arange(n), rng.integers(d, size=n)] |= ~moved.any(axis=1)
    return np.where(moved, low + (high - low) * sobol, center)


def covariance(theta: Array, x1: Array, x2: Array) -> Array:  # (d+3,), (n, d), (m, d) -> (n, m)
    """The Matern-5/2 kernel with one length scale per coordinate, without the noise."""
    lengthscales = np.exp(theta[3:])
    return np.asarray(np.exp(theta[1]) * matern52(cdist(x1 / lengthscales, x2 / lengthscales)))


def negative_log_likelihood(theta: Array, x: Array, y: Array) -> tuple[float, Array]:  # -> (), (d+3,)
    """Minus the log density of y, and its gradient by theta (Rasmussen, Williams 2006, Eqs. 2.30 and 5.9)."""
    mean, signal, noise = theta[0], np.exp(theta[1]), np.exp(theta[2])
    u = x / np.exp(theta[3:])
    z = cdist(u, u)
    R = signal * matern52(z)
    L = _factor(R, signal, noise)
    W = inverse_lower(L)
    alpha = W.T @ (W @ (y - mean))
    value = 0.5 * (y - mean) @ alpha + np.log(L.diagonal()).sum() + 0.5 * len(y) * np.log(2.0 * np.pi)
    G = W.T @ W - np.outer(alpha, alpha)  # the gradient by an entry of K, twice
    # dK_ij / dlog l_k = H_ij (u_ik - u_jk)^2; its sum over i, j needs no (n, n, d) array
    H = -signal * matern52_slope(z) * G
    by_lengthscales = H.sum(axis=1) @ u**2 - (u * (H @ u)).sum(axis=0)
    return float(value), np.array(
        [-alpha.sum(), 0.5 * (G * R).sum(), 0.5 * noise * np.trace(G), *by_lengthscales], dtype=float
    )


def fitted(x: Array, y: Array) -> Array:  # (n, d), (n,) -> (d+3,)
    """The most likely theta within its bounds, from the same start every time."""
    d = x.shape[1]
    start = [0.0, *np.log([START["signal"], START["noise"], *[START["lengthscale"]] * d])]
    bounds = [(-MEAN_BOUND, MEAN_BOUND)]
    bounds += [tuple(np.log(b)) for b in (SIGNAL_BOUNDS, NOISE_BOUNDS, *[LENGTHSCALE_BOUNDS] * d)]
    options = {"maxiter": FIT_ITERATIONS}
    result = minimize(
        negative_log_likelihood, start, args=(x, y), jac=True, bounds=bounds, method="L-BFGS-B", options=options
    )
    return np.asarray(result.x)


def posterior_sample(theta: Array, x: Array, y: Array, c: Array, rng: Generator) -> Array:  # -> (m,)
    """One joint sample of the function at the candidates given the data, by the Cholesky factor of its covariance."""
    mean, signal, noise = theta[0], np.exp(theta[1]), np.exp(theta[2])
    L = _factor(covariance(theta, x, x), signal, noise)
    V = solve_lower(L, covariance(theta, x, c))  # (n, m)
    residual = solve_lower(L, (y - mean)[:, None])
    # Just factorised, with an upper triangle that is not cleared
    S = np.tril(_factor(covariance(theta, c, c) - V.T @ V, signal, 0.0))
    return np.asarray(mean + (V.T @ residual)[:, 0] + S @ rng.standard_normal(len(c)))


def search(objective: Objective, seed: int) -> None:
    """Local searches one after the other, the first with the centre in its design, until the budget is spent."""
    rng = np.random.default_rng(seed)
    d = objective.dim
    n_initial = max(1, min(INITIAL_PER_DIMENSION * d, objective.budget // INITIAL_SHARE))
    design = np.vstack([np.full(d, 0.5), qmc.LatinHypercube(d, rng=rng).random(n_initial - 1)])
    while True:
        _local_search(objective, design, rng)
        design = qmc.LatinHypercube(d, rng=rng).random(n_initial)


def _local_search(objective: Objective, design: Array, rng: Generator) -> None:
    """Evaluate the design (n, d), then candidates of one trust region until this is too small."""
    d = objective.dim
    x, values = design, np.array([objective(2.0 * point - 1.0) for point in design])
    region = TrustRegion()
    while region.length >= SMALLEST_LENGTH:
        y, best = standardized(values), x[values.argmin()]
        theta = fitted(x, y)
        low, high = box(best, np.exp(theta[3:]), region.length)
        c = candidates(best, low, high, min(CANDIDATES_PER_DIMENSION * d, MOST_CANDIDATES), rng)
        point = c[posterior_sample(theta, x, y, c, rng).argmin()]
        value = objective(2.0 * point - 1.0)
        region = resized(region, improved=value < values.min(), failure_tolerance=max(SMALLEST_FAILURE_TOLERANCE, d))
        x, values = np.vstack([x, point]), np.append(values, value)


def _factor(R: Array, signal: float, noise: float) -> Array:  # (n, n) -> (n, n)
    """The lower Cholesky factor of R + noise I, and of a little more where rounding made it indefinite."""
    for nugget in NUGGETS:
        try:
            return cholesky(R, noise + nugget * signal, ())[0]
        except NotPositiveDefiniteError:
            continue
    raise NotPositiveDefiniteError(
        f"a covariance matrix of size {len(R)} could not be factorised with {NUGGETS[-1]:g} of the signal variance "
        "on its diagonal; look for NaN or infinity in the values of the objective."
    )


METHODS = (Method("turbo", "TuRBO-1", "Eriksson et al. 2019, Sec. 2", search),)

"""Additive BO: Add-GP-UCB of Kandasamy, Schneider and Poczos (ICML 2015).

    f(x) = sum_j f_j(x_j), the groups j disjoint and of at most p coordinates        x_j (n, d_j) data of one group
    k_j(x, x') = A exp(-|x_j - x'_j|^2 / (2 h^2)), with one scale A and one bandwidth h for all groups
    K (n, n) = sum_j k_j + noise   L its lower Cholesky factor   W = L^-1            theta (2,) = log h, log A

Every group has its own posterior, and the next point is put together from the minimisers of the groups' lower
confidence bounds. Constants that the paper leaves open are those of the authors' public code (add-gp-bandits); no code
is taken from it. The paper's text was not at hand, so that its equations are not cited by number. Its cube is [0, 1]^d,
so that lengths here are twice as large.

Where this differs from the paper, and why:
- The bandwidth and scale are fitted by L-BFGS-B with exact derivatives, where they take DiRect: two numbers, smooth.
- A group's bound is minimised by DiRect with the authors' number of evaluations, as there, and then polished by
  L-BFGS-B: few evaluations buy the last digits which DiRect would spend its whole budget on.
- The present decomposition competes with the random ones; the authors' code forgets it.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.random import Generator
from scipy.optimize import direct, minimize
from scipy.spatial.distance import cdist, pdist, squareform

from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective
from cylbo.model.gp import JITTERS, SMALLEST_VARIANCE, Posterior
from cylbo.model.scaling import standardized
from cylbo.numerics.linalg import cholesky, inverse_lower
from cylbo.search.improvement import Acquired
from cylbo.types import Array

__all__ = [
    "METHODS",
    "AdditiveGP",
    "Groups",
    "best_decomposition",
    "fitted_theta",
    "log_likelihood",
    "lower_bound",
    "next_point",
    "random_groups",
    "search",
]

Groups = tuple[tuple[int, ...], ...]  # disjoint coordinates, all of them

N_INITIAL = 10  # authors' code: enough to see the scale of the values, few beside any budget of the paper
CYCLE = 25  # N_cyc, evaluations between two looks at decomposition and scales; code
DECOMPOSITIONS = 20  # random ones per look; the code tries 5, more are still cheap
# Of the values' standard deviation. The code adds its 0.01 sd(y) to variances and so mixes units; we read it
# as a standard deviation, as the units say, and the functions here are without noise
NOISE_SD = 0.01
# Range of h; the code's is [1e-5, 5] in the unit cube. Its lower end is white noise, where a climb finds no slope to
# come back by: ours begins at a fortieth of the box
BANDWIDTHS = (0.05, 10.0)
SCALES = (0.03, 30.0)  # range of sqrt(A), of the values' standard deviation; code, read likewise
FIRST_BANDWIDTHS = (0.2, 1.0)  # ours: starts of the fit, beside the last one
DIRECT_PER_COORDINATE, DIRECT_AT_MOST = 100, 5000  # evaluations for all groups together; code
# The bandwidth was too wide if that many suggestions in a row were known as well as if already observed: it shrinks by
# a tenth at least (code). The code's threshold, 0.002 in the units of the values, would depend on these
STUCK_AFTER, STUCK_SD, SHRINK = 5, NOISE_SD, 0.9
TOO_CLOSE, PUSH = 1e-10, 0.1  # in bandwidths: a suggestion this close to an old point is pushed away that far; code


def search(objective: Objective, seed: int, *, group_size: int) -> None:
    """The centre, nine uniform points, then Add-GP-UCB with groups of at most `group_size` coordinates."""
    rng = np.random.default_rng(seed)
    objective(objective.center)
    for _ in range(N_INITIAL - 1):
        objective(rng.uniform(-1.0, 1.0, objective.dim))

    groups = random_groups(objective.dim, group_size, rng)
    theta = np.log([1.0, 1.0 / len(groups)])
    widest, stuck, rounds = BANDWIDTHS[1], 0, 0
    while objective.left:
        x, y = np.array(objective.points), standardized(np.array(objective.values))
        if rounds % CYCLE == 0 or stuck == STUCK_AFTER:
            if stuck == STUCK_AFTER:
                widest, stuck = max(SHRINK * math.exp(theta[0]), BANDWIDTHS[0]), 0
            groups, theta = best_decomposition(x, y, groups, theta, group_size, rng, widest=widest)
        gp = AdditiveGP(x, y, groups, theta)
        point = next_point(gp)
        stuck = stuck + 1 if gp.sd(point) < STUCK_SD else 0
        if cdist(x, point[None]).min() < TOO_CLOSE * gp.bandwidth:
            push = PUSH * gp.bandwidth * rng.standard_normal(objective.dim)
            point = np.clip(point + push, -1.0, 1.0)
        objective(point)
        rounds += 1


class AdditiveGP:
    """The posterior of a sum of functions and of each of its terms; with a single group, an ordinary GP."""

    def __init__(self, x: Array, y: Array, groups: Groups, theta: Array, *, noise: float = NOISE_SD**2) -> None:
        """Data x (n, d) and y (n,), `theta` = log h, log A, and the variance of the noise."""
        self.x, self.groups = x, groups
        self.bandwidth, self.amplitude = math.exp(theta[0]), math.exp(theta[1])
        K = self.amplitude * _correlations(x, groups, self.bandwidth)
        L, _ = cholesky(K, noise, JITTERS)
        self.W = inverse_lower(L)
        self.weights = self.W.T @ (self.W @ y)  # K^-1 y

    def group_posterior(self, j: int, z: Array) -> Posterior:  # (m, d_j)
        """Mean and variance of f_j given the values of f; a single "sample" in `Posterior`'s sense.

        mean_j = k_j(z, x_j) K^-1 y        variance_j = A - k_j(z, x_j) K^-1 k_j(x_j, z)
        """
        x = self.x[:, self.groups[j]]
        k = self.amplitude * np.exp(cdist(z, x, "sqeuclidean") * (-0.5 / self.bandwidth**2))  # (m, n)
        whitened = k @ self.W.T
        variance = self.amplitude - (whitened**2).sum(-1)

        def pullback(mean_bar: Array, variance_bar: Array) -> Array:  # (1, m), (1, m) -> (m, d_j)
            k_bar = mean_bar.T * self.weights - 2.0 * variance_bar.T * (whitened @ self.W)
            pull = k_bar * k  # dk/dz = -k (z - x) / h^2
            return np.asarray((pull @ x - pull.sum(-1, keepdims=True) * z) / self.bandwidth**2)

        floor = SMALLEST_VARIANCE * self.amplitude
        return Posterior((k @ self.weights)[None], np.maximum(variance, floor)[None], pullback)

    def sd(self, x: Array) -> float:  # (d,)
        """Posterior standard deviation of the whole f at one point."""
        k = self.amplitude * sum(
            np.exp(((x[list(g)] - self.x[:, g]) ** 2).sum(-1) * (-0.5 / self.bandwidth**2)) for g in self.groups
        )
        return math.sqrt(max(len(self.groups) * self.amplitude - float(((self.W @ k) ** 2).sum()), 0.0))


def log_likelihood(
    theta: Array, x: Array, y: Array, groups: Groups, *, noise: float = NOISE_SD**2
) -> tuple[float, Array]:
    """Log marginal likelihood of the values, log N(y; 0, K), and its derivative by theta (2,)."""
    bandwidth, amplitude = math.exp(theta[0]), math.exp(theta[1])
    squared = [pdist(x[:, g], "sqeuclidean") / bandwidth**2 for g in groups]
    each = [np.exp(-0.5 * s) for s in squared]
    K = amplitude * (squareform(sum(each)) + len(groups) * np.eye(len(x)))
    L, _ = cholesky(K, noise, JITTERS)
    W = inverse_lower(L)
    whitened = W @ y
    weights = W.T @ whitened
    value = -0.5 * whitened @ whitened - np.log(L.diagonal()).sum() - 0.5 * len(y) * math.log(2.0 * math.pi)
    # d value / d K = (K^-1 y y^T K^-1 - K^-1) / 2; every pair off the diagonal is met twice
    K_bar = 0.5 * (np.outer(weights, weights) - W.T @ W)
    by_bandwidth = (
        2.0 * amplitude * squareform(K_bar, checks=False) @ sum(s * e for s, e in zip(squared, each, strict=True))
    )
    return float(value), np.array([by_bandwidth, (K_bar * K).sum()])


def fitted_theta(
    x: Array, y: Array, groups: Groups, *, starts: Sequence[Array], widest: float = BANDWIDTHS[1]
) -> Array:  # (2,)
    """Theta of the largest marginal likelihood that L-BFGS-B finds from the starts, the bandwidth at most `widest`."""
    bounds = np.log([(BANDWIDTHS[0], widest), (SCALES[0] ** 2, SCALES[1] ** 2)])

    def loss(theta: Array) -> tuple[float, Array]:
        value, slope = log_likelihood(theta, x, y, groups)
        return -value, -slope

    ends = [minimize(loss, np.clip(t, *bounds.T), jac=True, method="L-BFGS-B", bounds=bounds) for t in starts]
    return np.asarray(min(ends, key=lambda end: end.fun).x)


def random_groups(dim: int, group_size: int, rng: Generator) -> Groups:
    """A random order of the coordinates, cut into groups of `group_size`; the last may be smaller."""
    order = rng.permutation(dim).tolist()
    return tuple(sorted(tuple(sorted(order[i : i + group_size])) for i in range(0, dim, group_size)))


def best_decomposition(
    x: Array,
    y: Array,
    groups: Groups,
    theta: Array,
    group_size: int,
    rng: Generator,
    *,
    tries: int = DECOMPOSITIONS,
    widest: float = BANDWIDTHS[1],
) -> tuple[Groups, Array]:
    """The present decomposition or one of `tries` random ones: that of the largest marginal likelihood, and its theta.

    All are compared at a single theta, as in the authors' code (ours is the one that fits the present groups best):
    fitting each is several times the cost and found nothing better (Branin and Hartmann6 in 20-d, 100 evaluations,
    three seeds).
    """
    dim = x.shape[1]
    starts = [theta, *(np.log([h, 1.0 / len(groups)]) for h in FIRST_BANDWIDTHS)]
    theta = fitted_theta(x, y, groups, starts=starts, widest=widest)
    if not 1 < group_size < dim:  # there is only one
        return groups, theta
    rivals = [groups, *(random_groups(dim, group_size, rng) for _ in range(tries))]
    winner = max(rivals, key=lambda rival: log_likelihood(theta, x, y, rival)[0])
    return winner, fitted_theta(x, y, winner, starts=[theta, *starts[1:]], widest=widest)


def lower_bound(posterior: Posterior, beta: float) -> Acquired:
    """Mean - sqrt(beta) sd, to be minimised (the paper maximises, and adds)."""
    sd = np.sqrt(posterior.variance)
    root = math.sqrt(beta)
    return Acquired((posterior.mean - root * sd)[0], np.ones_like(sd), -0.5 * root / sd)


def next_point(gp: AdditiveGP) -> Array:  # (d,)
    """Each group's coordinates minimise its own lower bound, with the beta_t = 0.2 d_j log(2 t) of the paper."""
    n, d = gp.x.shape
    evaluations = math.ceil(min(DIRECT_PER_COORDINATE * d, DIRECT_AT_MOST) / len(gp.groups))
    point = np.empty(d)
    for j, group in enumerate(gp.groups):
        beta = 0.2 * len(group) * math.log(2.0 * (n + 1))

        def value(z: Array, j: int = j, beta: float = beta) -> float:  # (d_j,)
            return float(lower_bound(gp.group_posterior(j, z[None]), beta).value[0])

        def slope(z: Array, j: int = j, beta: float = beta) -> Array:  # (d_j,) -> (d_j,)
            posterior = gp.group_posterior(j, z[None])
            _, *bars = lower_bound(posterior, beta)
            return np.asarray(posterior.pullback(*bars)[0])

        point[list(group)] = _box_minimizer(value, slope, len(group), evaluations)
    return point


def _box_minimizer(
    value: Callable[[Array], float], slope: Callable[[Array], Array], dim: int, evaluations: int
) -> Array:
    """DiRect over [-1, 1]^dim with that many evaluations, then L-BFGS-B from where it ends."""
    box = [(-1.0, 1.0)] * dim
    found = direct(value, box, maxfun=evaluations, locally_biased=False)
    polished = minimize(value, found.x, jac=slope, method="L-BFGS-B", bounds=box)
    return np.asarray(polished.x if polished.fun < found.fun else found.x)


def _correlations(x: Array, groups: Groups, bandwidth: float) -> Array:  # (n, d) -> (n, n)
    off_diagonal = sum(np.exp(pdist(x[:, g], "sqeuclidean") * (-0.5 / bandwidth**2)) for g in groups)
    return np.asarray(squareform(off_diagonal) + len(groups) * np.eye(len(x)))


METHODS = tuple(
    Method(f"additive-{p}", f"Additive BO (p = {p})", "Kandasamy et al. 2015", partial(search, group_size=p))
    for p in (1, 2, 4, 6, 10)
)

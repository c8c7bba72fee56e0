"""Elastic BO: Rana, Li, Gupta, Nguyen and Venkatesh (ICML 2017), "... with elastic Gaussian process".

    RBF kernel A exp(-|x - x'|^2 / (2 l^2))        true scale: the l of the model        x (d,) a point of the box

Far from all data, in lengthscales, the acquisition is flat and no local search moves. With a longer lengthscale its
gradient is significant everywhere. So a search begins at the smallest scale at which it can move, and follows the
maximum while the scale shrinks back to the true one; nearby scales have nearby maxima (both facts: the abstract).

Where this differs from the paper, and why:
- The scales are a geometric ladder, shared by all starts, where the paper's algorithm adds and subtracts a constant
  and halves it when a step does not move: each rung costs one Cholesky factor for all starts together, and the steps
  shrink with the scale anyway. The smallest scale with a gradient is exactly the first rung that has one.
- The acquisition is the logarithm of the expected improvement: it has the same maximum, is as flat far from data,
  but its gradient has a scale of its own, so that one threshold serves all rounds.
- Lengthscale and amplitude are fitted in every round by maximum likelihood.
Beyond its abstract the paper's text was not at hand: its algorithm is written from memory, and the numbers of starts
and of first points, the threshold and the longest scale (the box's diagonal) are our choices.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from cylbo.bench.methods.additive import AdditiveGP, fitted_theta
from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective
from cylbo.model.scaling import standardized
from cylbo.search.improvement import log_h
from cylbo.types import Array

__all__ = ["METHODS", "Improvement", "climbed", "elastic_search", "first_lively", "ladder", "search"]

N_STARTS = 5  # ours: random starts per suggestion
GROWTH = math.sqrt(2.0)  # ours: ratio of neighbouring scales
SIGNIFICANT = 1e-2  # ours: gradient of log EI that a search can follow; L-BFGS-B stops at 1e-5
FIRST_LENGTHSCALES = (0.1, 0.5)  # ours: starts of the fit, in diagonals of the box
TOO_CLOSE = 1e-8  # a suggestion this close to an old point teaches nothing: a random one takes its place


def search(objective: Objective, seed: int) -> None:
    """The centre, d uniform points (d + 1 in all), then elastic maximisation of the improvement."""
    rng = np.random.default_rng(seed)
    objective(objective.center)
    for _ in range(objective.dim):
        objective(rng.uniform(-1.0, 1.0, objective.dim))

    diagonal = 2.0 * math.sqrt(objective.dim)
    everything = (tuple(range(objective.dim)),)  # one group: an ordinary GP
    first_thetas = [np.log([share * diagonal, 1.0]) for share in FIRST_LENGTHSCALES]
    theta = first_thetas[0]
    while objective.left:
        x, y = np.array(objective.points), standardized(np.array(objective.values))
        theta = fitted_theta(x, y, everything, starts=[theta, *first_thetas], widest=diagonal)
        log_scales = np.log(ladder(math.exp(theta[0]), diagonal))
        models = (AdditiveGP(x, y, everything, np.array([log_scale, theta[1]])) for log_scale in log_scales)
        rungs = [Improvement(gp, y.min()) for gp in models]
        ends = [elastic_search(rungs, start) for start in rng.uniform(-1.0, 1.0, (N_STARTS, objective.dim))]
        point = max(ends, key=lambda end: rungs[0](end)[0])
        if np.linalg.norm(x - point, axis=-1).min() < TOO_CLOSE:
            point = rng.uniform(-1.0, 1.0, objective.dim)
        objective(point)


class Improvement:
    """Log expected improvement over `best` under one lengthscale."""

    def __init__(self, gp: AdditiveGP, best: float) -> None:
        self.gp, self.best = gp, best

    def __call__(self, x: Array) -> tuple[float, Array]:  # (d,) -> (), (d,)
        """Value and gradient at one point."""
        posterior = self.gp.group_posterior(0, x[None])
        # As `log_expected_improvement`, whose average over samples would be most of the cost for a single one
        sd = np.sqrt(posterior.variance)
        z = (self.best - posterior.mean) / sd
        h, h_slope = log_h(z)
        gradient = posterior.pullback(-h_slope / sd, 0.5 * (1.0 - h_slope * z) / posterior.variance)
        return float((h + np.log(sd)).item()), gradient[0]


def ladder(true_scale: float, longest: float) -> Array:  # -> (k,)
    """The true scale and ever longer ones, up to the first that is `longest` at least."""
    rungs = max(0, math.ceil(math.log(longest / true_scale) / math.log(GROWTH)))
    return np.asarray(true_scale * GROWTH ** np.arange(rungs + 1))


def first_lively(rungs: Sequence[Improvement], start: Array) -> int:
    """Index of the smallest scale whose gradient at the start is significant; the longest if none is."""
    lively = (i for i, rung in enumerate(rungs) if np.linalg.norm(rung(start)[1]) >= SIGNIFICANT)
    return next(lively, len(rungs) - 1)


def elastic_search(rungs: Sequence[Improvement], start: Array) -> Array:  # (d,) -> (d,)
    """Where the maximum goes from the first lively scale down to the true one, `rungs[0]`."""
    point = start
    for rung in reversed(rungs[: first_lively(rungs, start) + 1]):
        point = climbed(rung, point)
    return point


def climbed(rung: Improvement, start: Array) -> Array:  # (d,) -> (d,)
    """A local maximum in the box by L-BFGS-B."""

    def loss(x: Array) -> tuple[float, Array]:
        value, gradient = rung(x)
        return -value, -gradient

    end = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(-1.0, 1.0)] * len(start))
    return np.asarray(end.x)


METHODS = (Method("elastic", "Elastic BO", "Rana et al. 2017", search),)

"""Maximise a function over the domain: spread candidates, keep the best as starts, climb with Adam.

    x (m, d) points in ball coordinates

The room knows a function to climb and the domain, not what the function means.
"""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import qmc

from cylbo.geometry import Array, Domain

__all__ = [
    "Climb",
    "Objective",
    "Slope",
    "Spray",
    "Spread",
    "best_starts",
    "climb_keeping_best",
    "climb_until_no_decrease",
    "projected_spray",
    "reflected_spray",
    "sobol_shifted",
    "sobol_window",
    "uniform",
]

Objective = Callable[[Array], Array]  # (m, d) -> (m,), to be maximised
Slope = Callable[[Array], tuple[Array, Array]]  # (m, d) -> values (m,), gradients (m, d)
Spread = Callable[[Domain, int, Generator], Array]  # domain, n, rng -> (n, d)
Spray = Callable[[Array, Domain, float, int, Generator], Array]  # incumbent (d,), domain, sd, n, rng -> (n, d)

ADAM_BETAS = (0.9, 0.999)
ADAM_EPS = 1e-8


class Climb(Protocol):
    """Starts (k, d) -> end points (k, d) and their values (k,)."""

    def __call__(
        self, slope: Slope, starts: Array, domain: Domain, *, learning_rate: float, max_steps: int
    ) -> tuple[Array, Array]:
        """Climb from every start at once."""
        ...


def sobol_window(domain: Domain, n: int, rng: Generator) -> Array:  # -> (n, d)
    """A window of the plain Sobol sequence over the box, beginning at a random index up to n (authors' code)."""
    return domain.from_unit_cube(_sobol(domain.dim, n, rng))


def sobol_shifted(domain: Domain, n: int, rng: Generator) -> Array:  # -> (n, d)
    """The Sobol sequence over the box, shifted by a random vector modulo the box: fresh points every time."""
    return domain.from_unit_cube((_sobol(domain.dim, n, rng) + rng.random(domain.dim)) % 1.0)


def _sobol(dim: int, n: int, rng: Generator) -> Array:  # -> (n, dim)
    if dim > qmc.Sobol.MAXDIM:
        return rng.random((n, dim))
    engine = qmc.Sobol(dim, scramble=False)
    engine.fast_forward(1 + int(rng.integers(n)))  # not from the very first point, which is a corner of the box
    return np.asarray(engine.random(n))


def uniform(domain: Domain, n: int, rng: Generator) -> Array:  # -> (n, d)
    """Independent uniform points of the box."""
    return domain.from_unit_cube(rng.random((n, domain.dim)))


def reflected_spray(incumbent: Array, domain: Domain, sd: float, n: int, rng: Generator) -> Array:  # -> (n, d)
    """Normal steps about the incumbent, reflected at the box's faces (authors' code).

    An incumbent outside the box is thrown far from itself this way: a flaw of the original, kept for `PAPER`.
    """
    x = incumbent + sd * rng.standard_normal((n, domain.dim))
    x = np.where(x > domain.high, 2.0 * domain.high - x, x)
    return np.where(x < domain.low, 2.0 * domain.low - x, x)


def projected_spray(incumbent: Array, domain: Domain, sd: float, n: int, rng: Generator) -> Array:  # -> (n, d)
    """Normal steps about the incumbent, projected onto the domain."""
    return domain.project(incumbent + sd * rng.standard_normal((n, domain.dim)))


def best_starts(
    candidates: Array,  # (m, d)
    first_look: Objective,
    objective: Objective,
    n_starts: int,
    share: float,
    rng: Generator,
) -> Array:  # (k, d), k <= n_starts
    """The best candidates by `objective`, looked for among the best `share` by the cheaper `first_look`.

    Equal values are ordered at random; values that are not numbers are left out.
    """
    candidates = rng.permutation(candidates)
    if share < 1.0:
        candidates = _largest(candidates, first_look, max(n_starts, math.ceil(share * len(candidates))))
    return _largest(candidates, objective, n_starts)


def _largest(candidates: Array, objective: Objective, k: int) -> Array:
    if not len(candidates):
        return candidates
    values = objective(candidates)
    valid = ~np.isnan(values)
    candidates, values = candidates[valid], values[valid]
    return candidates[np.argsort(-values, stable=True)[:k]]


def climb_until_no_decrease(
    slope: Slope, starts: Array, domain: Domain, *, learning_rate: float, max_steps: int
) -> tuple[Array, Array]:
    """Adam as the authors stop it: each start ends at its first step that does not improve, which is kept; or before
    the first step that leaves the domain, or at a gradient that is not a number. There is no projection.
    """
    x = starts.copy()
    loss = np.full(len(x), np.inf)  # the negative value, one step ago
    active = np.arange(len(x))
    adam = _Adam(x)
    for _ in range(max_steps):
        value, gradient = slope(x[active])
        before, now = loss[active], -value
        scale = np.maximum(np.where(np.isinf(before), 1.0, np.abs(before)), np.maximum(np.abs(now), 1.0))
        going = ((before - now) / scale >= 1e-9) & np.isfinite(gradient).all(-1)
        loss[active] = now
        active, gradient = active[going], gradient[going]
        moved = x[active] + adam.step(gradient, active, learning_rate)
        inside = domain.contains(moved)
        active = active[inside]
        x[active] = moved[inside]
        if not len(active):
            break
    return x, slope(x)[0]


def climb_keeping_best(
    slope: Slope, starts: Array, domain: Domain, *, learning_rate: float, max_steps: int
) -> tuple[Array, Array]:
    """Projected Adam, the step shrinking a hundredfold on the way; the best point that each start saw is returned.

    So no start ends lower than it began. After each quarter of the steps the worse half of those still climbing stays
    where it is: which of twenty is the best is clear long before the best has arrived.
    """
    x = starts.copy()
    best, best_value = x.copy(), np.full(len(x), -np.inf)
    active = np.arange(len(x))
    adam = _Adam(x)
    for step in range(max_steps + 1):
        value, gradient = slope(x[active])
        better = value > best_value[active]
        improved = active[better]
        best[improved], best_value[improved] = x[improved], value[better]
        if step and step % math.ceil(max_steps / 4) == 0:
            order = np.argsort(-best_value[active], stable=True)[: math.ceil(len(active) / 2)]
            active, gradient = active[order], gradient[order]
        rate = learning_rate * 0.01 ** (step / max_steps)
        x[active] = domain.project(x[active] + adam.step(np.nan_to_num(gradient), active, rate))
    return best, best_value


class _Adam:
    """Adam (Kingma and Ba 2015) for rows that may drop out one by one."""

    def __init__(self, x: Array) -> None:
        self.first, self.second = np.zeros_like(x), np.zeros_like(x)
        self.steps = 0

    def step(self, gradient: Array, rows: NDArray[np.intp], rate: float) -> Array:  # (k, d), (k,) -> (k, d)
        """The uphill displacement of the rows at hand; rows that dropped out never come back."""
        b1, b2 = ADAM_BETAS
        self.steps += 1
        first = self.first[rows] = b1 * self.first[rows] + (1.0 - b1) * gradient
        second = self.second[rows] = b2 * self.second[rows] + (1.0 - b2) * gradient**2
        unbiased = second / (1.0 - b2**self.steps)
        return np.asarray(rate * first / (1.0 - b1**self.steps) / (np.sqrt(unbiased) + ADAM_EPS))

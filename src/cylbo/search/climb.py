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
from scipy.optimize import minimize

from cylbo.space.domain import Domain
from cylbo.types import Array

__all__ = [
    "Climb",
    "Objective",
    "Slope",
    "Spray",
    "Spread",
    "best_starts",
    "climb_keeping_best",
    "climb_quasi_newton",
    "climb_until_no_decrease",
    "projected_spray",
    "reflected_spray",
    "sobol_shifted",
    "sobol_window",
    "sparse_spray",
    "uniform",
]

Objective = Callable[[Array], Array]  # (m, d) -> (m,), to be maximised
Slope = Callable[[Array], tuple[Array, Array]]  # (m, d) -> values (m,), gradients (m, d)
Spread = Callable[[Domain, int, Generator], Array]  # domain, n, rng -> (n, d)
Spray = Callable[[Array, Domain, float, int, Generator], Array]  # best points (k, d), domain, sd, n, rng -> (n, d)

ADAM_BETAS = (0.9, 0.999)
ADAM_EPS = 1e-8

FEW_COORDINATES = 20  # moved by a sparse step (Eriksson et al. 2019) ...
FEW_SHARES = (1.0, 0.3, 0.1)  # ... or one of these shares of them, drawn anew for every spray


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
    # scipy.stats takes as long to import as everything else together, and the default method has no use for it
    from scipy.stats import qmc

    if dim > qmc.Sobol.MAXDIM:
        return rng.random((n, dim))
    engine = qmc.Sobol(dim, scramble=False)
    engine.fast_forward(1 + int(rng.integers(n)))  # not from the very first point, which is a corner of the box
    return np.asarray(engine.random(n))


def uniform(domain: Domain, n: int, rng: Generator) -> Array:  # -> (n, d)
    """Independent uniform points of the box."""
    return domain.from_unit_cube(rng.random((n, domain.dim)))


def reflected_spray(leaders: Array, domain: Domain, sd: float, n: int, rng: Generator) -> Array:  # -> (n, d)
    """Normal steps about the incumbent, reflected at the box's faces (authors' code).

    An incumbent outside the box is thrown far from itself this way: a flaw of the original, kept for `PAPER`.
    """
    x: Array = leaders[0] + sd * rng.standard_normal((n, domain.dim))
    x = np.where(x > domain.high, 2.0 * domain.high - x, x)
    return np.where(x < domain.low, 2.0 * domain.low - x, x)


def projected_spray(leaders: Array, domain: Domain, sd: float, n: int, rng: Generator) -> Array:  # -> (n, d)
    """Normal steps about the incumbent, projected onto the domain."""
    return domain.project(leaders[0] + sd * rng.standard_normal((n, domain.dim)))


def sparse_spray(leaders: Array, domain: Domain, sd: float, n: int, rng: Generator) -> Array:  # -> (n, d)
    """Normal steps about the best points, half of them along a few coordinates only, projected onto the domain.

    Half of the steps begin at the very best point, the others at any of the leaders. A step along few coordinates
    (about 20, or a tenth to all of them in low dimensions) leaves the others at values that are known to be good, as
    the perturbations of Regis and Shoemaker 2013 and of Eriksson et al. 2019 do.
    """
    d = domain.dim
    base = leaders[np.where(rng.random(n) < 0.5, 0, rng.integers(len(leaders), size=n))]
    chance = min(FEW_COORDINATES / d, float(rng.choice(FEW_SHARES))) if d > 1 else 1.0
    moved = (rng.random((n, d)) < chance) | (rng.random((n, 1)) < 0.5)
    moved[np.arange(n), rng.integers(d, size=n)] = True
    return domain.project(base + np.where(moved, sd * rng.standard_normal((n, d)), 0.0))


def best_starts(
    groups: list[Array],  # each (m, d)
    first_look: Objective,
    objective: Objective,
    n_starts: int,
    *,
    per_group: int | None,
    share: float,
    rng: Generator,
) -> Array:  # (k, d), k <= n_starts
    """The best candidates by `objective`, looked for among the best `share` by the cheaper `first_look`.

    At most `per_group` come from each group, so that they do not all lie in one neighbourhood; None makes no such
    difference. Equal values are ordered at random; values that are not numbers are left out.
    """
    if per_group is None:
        groups, per_group = [np.concatenate(groups)], n_starts
    chosen = []
    for group in groups:
        candidates = rng.permutation(group)
        if share < 1.0:
            candidates = _largest(candidates, first_look, max(per_group, math.ceil(share * len(candidates))))
        chosen.append(_largest(candidates, objective, per_group))
    if len(chosen) == 1:
        return chosen[0][:n_starts]
    return _largest(rng.permutation(np.concatenate(chosen)), objective, n_starts)


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


def climb_quasi_newton(
    slope: Slope, starts: Array, domain: Domain, *, learning_rate: float, max_steps: int
) -> tuple[Array, Array]:
    """L-BFGS-B from every start in turn, a quarter of the steps; the best two go on. None ends lower than it began.

    In a ball, which it cannot keep to, Adam.
    """
    if not domain.within_box:
        return climb_keeping_best(slope, starts, domain, learning_rate=learning_rate, max_steps=max_steps)

    def loss(x: Array) -> tuple[float, Array]:
        value, gradient = slope(x[None])
        usable = bool(np.isfinite(value[0]) and np.isfinite(gradient).all())
        return (-float(value[0]), -gradient[0]) if usable else (np.finfo(float).max, np.zeros_like(x))

    def climbed(x: Array, steps: int) -> tuple[Array, float]:
        low, high = domain.low, domain.high
        if domain.lattice is not None:
            low, high = np.where(domain.lattice.jumps, x, low), np.where(domain.lattice.jumps, x, high)
        bounds = np.stack([low, high], -1)
        end = minimize(loss, x, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})
        return end.x, float(end.fun)

    first = math.ceil(max_steps / 4)
    ends = [climbed(x, first) for x in starts]
    if max_steps > first:
        for i in sorted(range(len(ends)), key=lambda i: ends[i][1])[:2]:
            ends[i] = climbed(ends[i][0], max_steps - first)
    points = domain.project(np.stack([x for x, _ in ends]))
    if domain.lattice is not None:  # what was climbed to and what can be evaluated may differ
        return points, slope(points)[0]
    return points, np.array([-fun if fun < np.finfo(float).max else np.nan for _, fun in ends])


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

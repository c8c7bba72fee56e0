"""Maximise a function over the domain: spread candidates, keep the best as starts, climb with Adam.

    x (m, d) points in ball coordinates   objective: (m, d) -> (m,), differentiable, to be maximised

The room knows a function to climb and the domain, not what the function means.
"""

import math
from collections.abc import Callable
from typing import Protocol

import torch
from numpy.random import Generator
from torch import Tensor

from cylbo.geometry import Domain

__all__ = [
    "Climb",
    "Objective",
    "Spray",
    "Spread",
    "best_starts",
    "climb_keeping_best",
    "climb_until_no_decrease",
    "projected_spray",
    "reflected_spray",
    "sobol_scrambled",
    "sobol_window",
]

Objective = Callable[[Tensor], Tensor]
Spread = Callable[[Domain, int, Generator], Tensor]  # domain, n, rng -> (n, d)
Spray = Callable[[Tensor, Domain, float, int, Generator], Tensor]  # incumbent (d,), domain, sd, n, rng -> (n, d)

SOBOL_MAX_DIM = torch.quasirandom.SobolEngine.MAXDIM
ADAM_BETAS = (0.9, 0.999)
ADAM_EPS = 1e-8


class Climb(Protocol):
    """Starts (k, d) -> end points (k, d) and their objective values (k,)."""

    def __call__(
        self, objective: Objective, starts: Tensor, domain: Domain, *, learning_rate: float, max_steps: int
    ) -> tuple[Tensor, Tensor]:
        """Climb from every start at once."""
        ...


def sobol_window(domain: Domain, n: int, rng: Generator) -> Tensor:  # -> (n, d)
    """A window of the plain Sobol sequence over the box, beginning at a random index below n (authors' code)."""
    if domain.dim > SOBOL_MAX_DIM:
        return uniform(domain, n, rng)
    engine = torch.quasirandom.SobolEngine(domain.dim)
    engine.fast_forward(int(rng.integers(n)))
    return domain.from_unit_cube(engine.draw(n, dtype=torch.float64))


def sobol_scrambled(domain: Domain, n: int, rng: Generator) -> Tensor:  # -> (n, d)
    """A freshly scrambled Sobol sequence over the box."""
    if domain.dim > SOBOL_MAX_DIM:
        return uniform(domain, n, rng)
    engine = torch.quasirandom.SobolEngine(domain.dim, scramble=True, seed=int(rng.integers(2**31)))
    return domain.from_unit_cube(engine.draw(n, dtype=torch.float64))


def uniform(domain: Domain, n: int, rng: Generator) -> Tensor:  # -> (n, d)
    """Independent uniform points of the box."""
    return domain.from_unit_cube(torch.from_numpy(rng.random((n, domain.dim))))


def reflected_spray(incumbent: Tensor, domain: Domain, sd: float, n: int, rng: Generator) -> Tensor:  # -> (n, d)
    """Normal steps about the incumbent, reflected at the box's faces (authors' code).

    An incumbent outside the box is thrown far from itself this way: a flaw of the original, kept for `PAPER`.
    """
    x = incumbent + sd * torch.from_numpy(rng.standard_normal((n, domain.dim)))
    x = torch.where(x > domain.high, 2.0 * domain.high - x, x)
    return torch.where(x < domain.low, 2.0 * domain.low - x, x)


def projected_spray(incumbent: Tensor, domain: Domain, sd: float, n: int, rng: Generator) -> Tensor:  # -> (n, d)
    """Normal steps about the incumbent, projected onto the domain."""
    return domain.project(incumbent + sd * torch.from_numpy(rng.standard_normal((n, domain.dim))))


def best_starts(
    candidates: Tensor,  # (m, d)
    first_look: Objective,
    objective: Objective,
    n_starts: int,
    share: float,
    rng: Generator,
) -> Tensor:  # (k, d), k <= n_starts
    """The best candidates by `objective`, looked for among the best `share` by the cheaper `first_look`.

    Equal values are ordered at random; values that are not numbers are left out.
    """
    candidates = candidates[torch.from_numpy(rng.permutation(len(candidates)))]
    if share < 1.0:
        keep = max(n_starts, math.ceil(share * len(candidates)))
        candidates = _largest(candidates, first_look, keep)
    return _largest(candidates, objective, n_starts)


def _largest(candidates: Tensor, objective: Objective, k: int) -> Tensor:
    with torch.no_grad():
        values = objective(candidates)
    valid = ~values.isnan()
    candidates, values = candidates[valid], values[valid]
    return candidates[values.sort(descending=True, stable=True).indices[:k]]


def climb_until_no_decrease(
    objective: Objective, starts: Tensor, domain: Domain, *, learning_rate: float, max_steps: int
) -> tuple[Tensor, Tensor]:
    """Adam as the authors stop it: each start ends at its first step that does not improve, which is kept; or before the
    first step that leaves the domain, or at a gradient that is not a number. There is no projection.
    """
    x = starts.clone()
    before = x.new_full((len(x),), math.inf)  # loss, the negative objective, one step ago
    active = torch.arange(len(x))
    adam = _Adam(x)
    for _ in range(max_steps):
        value, gradient = _value_and_gradient(objective, x[active])
        loss, last = -value, before[active]
        scale = torch.maximum(loss.abs(), last.abs()).clamp_min(1.0)
        decrease = torch.where(last.isinf(), math.inf, (last - loss) / scale)
        before[active] = loss
        going = (decrease >= 1e-9) & gradient.isfinite().all(-1)
        active, gradient = active[going], gradient[going]
        if not len(active):
            break
        moved = x[active] + adam.step(gradient, active, learning_rate)
        inside = domain.contains(moved)
        active = active[inside]
        x[active] = moved[inside]
        if not len(active):
            break
    with torch.no_grad():
        return x, objective(x)


def climb_keeping_best(
    objective: Objective, starts: Tensor, domain: Domain, *, learning_rate: float, max_steps: int
) -> tuple[Tensor, Tensor]:
    """Projected Adam from every start, the step shrinking a hundredfold on the way; the best point seen is returned.

    So no start ends lower than it began.
    """
    x = starts.clone()
    best, best_value = x.clone(), x.new_full((len(x),), -math.inf)
    everyone = torch.arange(len(x))
    adam = _Adam(x)
    for step in range(max_steps):
        value, gradient = _value_and_gradient(objective, x)
        better = value > best_value
        best[better], best_value[better] = x[better], value[better]
        rate = learning_rate * 0.01 ** (step / max_steps)
        x = domain.project(x + adam.step(gradient.nan_to_num(), everyone, rate))
    with torch.no_grad():
        value = objective(x)
    better = value > best_value
    best[better], best_value[better] = x[better], value[better]
    return best, best_value


class _Adam:
    """Adam (Kingma and Ba 2015) for rows that may drop out one by one, which torch.optim cannot do."""

    def __init__(self, x: Tensor) -> None:
        self.first, self.second = torch.zeros_like(x), torch.zeros_like(x)
        self.steps = 0

    def step(self, gradient: Tensor, rows: Tensor, rate: float) -> Tensor:  # (k, d), (k,) -> (k, d)
        """The uphill displacement of the rows at hand; rows that dropped out never come back."""
        b1, b2 = ADAM_BETAS
        self.steps += 1
        first = self.first[rows] = b1 * self.first[rows] + (1.0 - b1) * gradient
        second = self.second[rows] = b2 * self.second[rows] + (1.0 - b2) * gradient**2
        unbiased = second / (1.0 - b2**self.steps)
        return rate * first / (1.0 - b1**self.steps) / (unbiased.sqrt() + ADAM_EPS)


def _value_and_gradient(objective: Objective, x: Tensor) -> tuple[Tensor, Tensor]:  # (k, d) -> (k,), (k, d)
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        value = objective(x)
        (gradient,) = torch.autograd.grad(value.sum(), x)
    return value.detach(), gradient

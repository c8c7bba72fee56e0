"""Neal's univariate slice sampler, swept over the coordinates of a vector.

R. M. Neal, Slice sampling, Annals of Statistics 31 (2003) 705-767: the interval is found by doubling (Fig. 4), narrowed
by shrinkage (Fig. 5), and a point found after doubling must pass the acceptance test (Fig. 6). The room knows a
function vector -> log density and nothing else.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from cylbo.errors import SamplingError
from cylbo.types import Array as Vector

__all__ = ["Chain", "LogDensity", "sample", "slice_update", "sweep"]

# (theta, floor) -> log density; where that is below the floor, any number below the floor will do
LogDensity = Callable[[Vector, float], float]
Univariate = Callable[[float, float], float]

MAX_SHRINKS = 200  # on exhaustion the coordinate stays put; 200 halvings pass through all of float64's precision


MAX_DOUBLINGS = 10  # the authors'; with Neal's test any bound leaves the density invariant
NARROWEST = 1e-4  # width that a coordinate which hardly moves is left with; ten doublings make it 0.1 again


@dataclass(frozen=True)
class Chain:
    """What the next call needs to go on: the last state, and the width of the first interval in each coordinate."""

    theta: Vector  # (p,)
    widths: Vector  # (p,)


def sample(
    log_density: LogDensity,
    chain: Chain,
    n_sweeps: int,
    rng: Generator,
    *,
    lower: Vector,  # (p,)
    upper: Vector,  # (p,)
    tune_widths: bool,
) -> tuple[Vector, Chain]:  # (n_sweeps, p)
    """The states after each of `n_sweeps` sweeps, and the chain to continue; no burn-in, no thinning.

    With `tune_widths` the widths of the returned chain are drawn towards three mean moves of this call, about the width
    of its slices. They stand still while the call runs, so its states have the right law.

    Raises:
        SamplingError: the density of the chain's state is zero or not a number.

    """
    theta, value = chain.theta, log_density(chain.theta, -math.inf)
    if not math.isfinite(value):
        raise SamplingError(f"the sampler needs a start of positive density, got log density {value} at {theta}.")
    states = np.empty((n_sweeps, len(theta)))
    moved = np.zeros(len(theta))
    for i in range(n_sweeps):
        before = theta
        theta, value = sweep(log_density, theta, value, rng, lower=lower, upper=upper, widths=chain.widths)
        states[i] = theta
        moved += np.abs(theta - before)
    if not tune_widths:
        return states, Chain(theta, chain.widths)
    slices = 3.0 * moved / n_sweeps
    widths = np.where(slices > 0, np.sqrt(slices * chain.widths), chain.widths)
    return states, Chain(theta, np.maximum(widths, NARROWEST))


def sweep(
    log_density: LogDensity,
    theta: Vector,  # (p,)
    value: float,  # log density of theta
    rng: Generator,
    *,
    lower: Vector,
    upper: Vector,
    widths: Vector,
) -> tuple[Vector, float]:
    """One slice update of every coordinate, in a fresh random order; a coordinate without room is left alone."""
    theta = theta.copy()
    for i in rng.permutation(len(theta)):
        if lower[i] == upper[i]:
            continue

        def along(t: float, floor: float, i: int = i) -> float:
            point = theta.copy()
            point[i] = t
            return log_density(point, floor)

        theta[i], value = slice_update(
            along, float(theta[i]), value, rng, support=(float(lower[i]), float(upper[i])), width=float(widths[i])
        )
    return theta, value


def slice_update(
    log_density: Univariate,
    x: float,
    value: float,  # log density of x
    rng: Generator,
    *,
    support: tuple[float, float] = (-math.inf, math.inf),
    width: float,
) -> tuple[float, float]:
    """A new point and its log density, leaving the density invariant.

    Outside `support` the density is zero; nothing is evaluated there.
    """
    level = value - rng.exponential()
    seen: dict[float, float] = {}

    def above(t: float) -> bool:
        if not support[0] <= t <= support[1]:
            return False
        if t not in seen:
            seen[t] = log_density(t, level)
        return seen[t] > level

    interval, doubled = _doubled_interval(above, x, rng, width)
    # Where the support cuts the interval, so may we: the part cut off holds no point of the slice
    left, right = max(interval[0], support[0]), min(interval[1], support[1])
    for _ in range(MAX_SHRINKS):  # Fig. 5
        candidate = rng.uniform(left, right)
        if above(candidate) and (not doubled or _reachable(above, x, candidate, interval, width)):
            return candidate, seen[candidate]
        if candidate < x:
            left = candidate
        else:
            right = candidate
    return x, value


def _doubled_interval(
    above: Callable[[float], bool], x: float, rng: Generator, width: float
) -> tuple[tuple[float, float], bool]:
    """An interval about x, doubled to a random side until both ends are below the slice. Fig. 4."""
    left = x - width * rng.random()
    right = left + width
    doublings = 0
    while doublings < MAX_DOUBLINGS and (above(left) or above(right)):
        if rng.random() < 0.5:
            left -= right - left
        else:
            right += right - left
        doublings += 1
    return (left, right), doublings > 0


def _reachable(
    above: Callable[[float], bool], x: float, candidate: float, interval: tuple[float, float], width: float
) -> bool:
    """Whether doubling from the candidate could have ended at the same interval. Fig. 6."""
    left, right = interval
    differ = False
    while right - left > 1.1 * width:
        middle = 0.5 * (left + right)
        differ = differ or (x < middle) != (candidate < middle)
        if candidate < middle:
            right = middle
        else:
            left = middle
        if differ and not above(left) and not above(right):
            return False
    return True

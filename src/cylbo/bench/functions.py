"""The paper's benchmark functions in the authors' scaling: x in [-1, 1]^d, any d, optimum known.

    x (..., d) -> (...,)

Outside the box the formulas are simply continued, as in the paper's experiments, which search the ball around it.
Differences between the paper's formulas and what was run are told in docs/errata.md.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["FUNCTIONS", "Problem", "branin", "hartmann6", "levy", "problem", "rosenbrock"]

Array = NDArray[np.float64]

HARTMANN6_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN6_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN6_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
HARTMANN6_OPTIMUM = np.array([0.20168952, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730054])

# The authors' normalisation of Rosenbrock, not in the paper: f(centre) becomes 8608.36 in every dimension
ROSENBROCK_SCALE = 50_000.0 / (90.0**2 + 9.0**2)


def branin(x: ArrayLike) -> Array:
    """Mean of Branin over pairs of coordinates, each scaled to [-5, 10] x [0, 15]; an odd last one is a dummy."""
    x = np.asarray(x, dtype=float)
    pairs = x.shape[-1] // 2
    u, v = 7.5 * x[..., 0 : 2 * pairs : 2] + 2.5, 7.5 * x[..., 1 : 2 * pairs : 2] + 7.5
    well = (v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6) ** 2
    return np.asarray(np.mean(well + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10, axis=-1))


def hartmann6(x: ArrayLike) -> Array:
    """Mean of Hartmann6 over blocks of six coordinates, each scaled to [0, 1]; what is left over are dummies."""
    x = np.asarray(x, dtype=float)
    blocks = x.shape[-1] // 6
    u = (x[..., : 6 * blocks].reshape(*x.shape[:-1], blocks, 1, 6) + 1) / 2
    exponents = (HARTMANN6_A * (u - HARTMANN6_P) ** 2).sum(-1)
    return np.asarray(-np.mean(np.exp(-exponents) @ HARTMANN6_ALPHA, axis=-1))


def rosenbrock(x: ArrayLike) -> Array:
    """Rosenbrock on [-5, 10]^d times 50000 / (8181 (d - 1))."""
    x = np.asarray(x, dtype=float)
    u = 7.5 * x + 2.5
    terms = 100 * (u[..., 1:] - u[..., :-1] ** 2) ** 2 + (u[..., :-1] - 1) ** 2
    return np.asarray(terms.sum(-1) * ROSENBROCK_SCALE / (x.shape[-1] - 1))


def levy(x: ArrayLike) -> Array:
    """The standard Levy function on [-10, 10]^d (the paper's supplement prints another formula)."""
    w = 1 + (10 * np.asarray(x, dtype=float) - 1) / 4
    first = np.sin(np.pi * w[..., 0]) ** 2
    inner, last = w[..., :-1], w[..., -1]
    middle = ((inner - 1) ** 2 * (1 + 10 * np.sin(np.pi * inner + 1) ** 2)).sum(-1)
    return np.asarray(first + middle + (last - 1) ** 2 * (1 + np.sin(2 * np.pi * last) ** 2))


@dataclass(frozen=True)
class Problem:
    """A function on [-1, 1]^d that knows its optimum."""

    name: str
    dim: int
    function: Callable[[ArrayLike], Array]
    minimizer: Array  # (d,) one of the global minimisers
    minimum: float

    def __call__(self, x: ArrayLike) -> float:
        """The value at one point (d,)."""
        return float(self.function(x))

    @property
    def bounds(self) -> Array:
        """The box, (d, 2)."""
        return np.tile([-1.0, 1.0], (self.dim, 1))

    @property
    def at_center(self) -> float:
        """The value that every method of the paper's tables starts from."""
        return self(np.zeros(self.dim))


def _cycled(block: Array, dim: int) -> Array:
    """The block repeated as often as it fits, then zeros."""
    repeats = dim // len(block)
    return np.concatenate([np.tile(block, repeats), np.zeros(dim - repeats * len(block))])


def _branin(dim: int) -> Array:
    return _cycled((np.array([np.pi, 2.275]) - [2.5, 7.5]) / 7.5, dim)


def _hartmann6(dim: int) -> Array:
    return _cycled(2 * HARTMANN6_OPTIMUM - 1, dim)


FUNCTIONS: dict[str, tuple[Callable[[ArrayLike], Array], Callable[[int], Array], int]] = {
    "branin": (branin, _branin, 2),
    "hartmann6": (hartmann6, _hartmann6, 6),
    "rosenbrock": (rosenbrock, lambda dim: np.full(dim, -0.2), 2),
    "levy": (levy, lambda dim: np.full(dim, 0.1), 1),
}


def problem(name: str, dim: int) -> Problem:
    """One of the paper's functions in `dim` dimensions."""
    if name not in FUNCTIONS:
        raise ValueError(f"function must be one of {', '.join(map(repr, FUNCTIONS))}, got {name!r}.")
    function, minimizer, smallest = FUNCTIONS[name]
    if dim < smallest:
        raise ValueError(f"{name} needs at least {smallest} dimensions, got {dim}.")
    x = minimizer(dim)
    return Problem(name, dim, function, x, float(function(x)))

"""Shifted functions of which a third of the box crashes, but neither the centre nor the optimum.

A half-space crashes, or where a smooth random function of five coordinates is high, or a corner of two coordinates.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from cylbo.bench.functions import problem
from cylbo.bench.problems.task import Family, Task
from cylbo.types import Array

__all__ = ["FAMILY", "SCORES", "Region", "region"]

DIM = 20
# Of the box that crashes
SHARE = 1.0 / 3.0
# Points that calibrate the share, to within half a per cent
SAMPLE = 2**14
# Standard deviations of the score, over the box, from the optimum to the border
NEAR = 0.1

Score = Callable[[Array], Array]  # (..., d) -> (...,)


@dataclass(frozen=True, eq=False)
class Region:
    """Where evaluations crash: score(x) > threshold."""

    score: Score
    threshold: float

    def crashes(self, x: Array) -> bool:  # (d,)
        """Whether this point does."""
        return bool(self.score(x) > self.threshold)


def half_space(rng: Generator, dim: int) -> Score:
    """Along a random direction."""
    w = rng.standard_normal(dim)
    return lambda x: np.asarray(x @ w)


def smooth(rng: Generator, dim: int, coordinates: int = 5, waves: int = 64) -> Score:
    """A random function of a few coordinates that varies over half the width of the box: a sum of random waves."""
    chosen = rng.permutation(dim)[:coordinates]
    frequencies, phases = rng.standard_normal((coordinates, waves)), rng.uniform(0.0, 2.0 * np.pi, waves)
    weights = rng.standard_normal(waves)
    return lambda x: np.asarray(np.cos(x[..., chosen] @ frequencies + phases) @ weights)


def corner(rng: Generator, dim: int) -> Score:
    """The larger of two coordinates, or of their opposites, of which one crashes earlier than the other."""
    pair, signs, lead = rng.permutation(dim)[:2], rng.choice([-1.0, 1.0], 2), [0.0, rng.uniform(0.0, 0.3)]
    return lambda x: np.asarray((x[..., pair] * signs + lead).max(-1))


SCORES = {"half-space": half_space, "smooth": smooth, "corner": corner}


def region(kind: str, optimum: Array, rng: Generator, *, near: bool = False) -> Region:
    """One of that kind in which neither the centre nor the optimum (d,) lies; next to the optimum if `near`."""
    sample = rng.uniform(-1.0, 1.0, (SAMPLE, len(optimum)))
    while True:
        score = SCORES[kind](rng, len(optimum))
        of_sample = score(sample)
        threshold = float(np.quantile(of_sample, 1.0 - SHARE))
        of_center, of_optimum = (threshold - score(np.stack([np.zeros(len(optimum)), optimum]))) / of_sample.std()
        if of_center > 0.0 and of_optimum > 0.0 and (of_optimum < NEAR or not near):
            return Region(score, threshold)


# name -> function, kind of region, whether its border passes close to the optimum
PROBLEMS = {f"{name}, {kind}": (name, kind, False) for name in ("levy", "rosenbrock", "hartmann6") for kind in SCORES}
PROBLEMS |= {f"hartmann6, {kind}, near": ("hartmann6", kind, True) for kind in SCORES}


def _task(name: str, seed: int) -> Task:
    base, kind, near = PROBLEMS[name]
    f = problem(f"{base}-shifted", DIM, instance=seed)
    assert f.minimizer is not None
    crashing = region(kind, f.minimizer, np.random.default_rng([zlib.crc32(name.encode()), seed]), near=near)
    return Task(lambda x: np.nan if crashing.crashes(x) else f(x), f.minimum)


FAMILY = Family(dict.fromkeys(PROBLEMS, DIM), _task, frozenset({"crashes"}))

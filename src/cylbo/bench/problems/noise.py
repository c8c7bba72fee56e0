"""Hartmann6 with noise: what counts is the true value at the point that a method would recommend."""

import zlib

import numpy as np

from cylbo.bench.functions import problem
from cylbo.bench.problems.task import Family, Point, Task

__all__ = ["FAMILY"]

DIM = 20
# name -> function, standard deviation of the noise
PROBLEMS = {f"{name}, sd {sd}": (name, sd) for name in ("hartmann6", "hartmann6-shifted") for sd in (0.1, 0.5)}


def _task(name: str, seed: int) -> Task:
    base, sd = PROBLEMS[name]
    f = problem(base, DIM, instance=seed)
    # The same noise for every method, and for every standard deviation
    rng = np.random.default_rng([zlib.crc32(base.encode()), seed])

    def evaluate(x: Point) -> float:
        return f(x) + sd * float(rng.standard_normal())

    return Task(evaluate, f.minimum, truth=f, noise=sd)


FAMILY = Family(dict.fromkeys(PROBLEMS, DIM), _task, frozenset({"noise"}))

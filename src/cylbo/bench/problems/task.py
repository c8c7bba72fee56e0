"""What a run of the lab is about, beyond a function on a box: noise, crashes, a space of choices."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cylbo.space.space import Space

__all__ = ["Family", "Need", "Point", "Task"]

# What not every method can do
Need = Literal["noise", "crashes", "mixed", "batches"]

# An array (d,) of the box [-1, 1]^d, or a dict by name where there is a space
Point = Any


@dataclass(frozen=True, eq=False)
class Task:
    """A problem as one run meets it."""

    # The value at a point; NaN where the evaluation crashes
    evaluate: Callable[[Point], float]
    # The lowest value without noise; None where nobody knows it
    minimum: float | None = None
    # Of a noisy problem: the value without noise, and the standard deviation of the noise
    truth: Callable[[Point], float] | None = None
    noise: float = 0.0
    # The space of a problem that is not on the box
    space: Space | None = None


@dataclass(frozen=True)
class Family:
    """Problems that are made in one way, each in one dimension."""

    # name -> dimension
    dims: Mapping[str, int]
    # of a name and the seed of the run, which is also the number of the instance
    make: Callable[[str, int], Task]
    needs: frozenset[Need] = frozenset()
    # pip names of what evaluations use beyond cylbo itself
    packages: tuple[str, ...] = ()

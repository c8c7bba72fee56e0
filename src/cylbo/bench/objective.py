"""What a method of the lab is given: something to evaluate, a dimension, a budget. Nothing else.

Every method searches the box [-1, 1]^d, begins at its centre and evaluates until the objective raises `Spent`. What
a problem asks beyond that, only methods meet that say they can do it (`Method.handles`):

    crashes   a value is NaN where the evaluation crashed
    mixed     there is a `space`, and a point is a dict of its parameters
    batches   `batch` points are to be evaluated together, by `evaluate`
    noise     whenever the objective `asks_for_best`, the method is to `recommend` one of its points
"""

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from cylbo.bench.problems.task import Point, Task
from cylbo.space.space import Space
from cylbo.types import Array

__all__ = ["Objective", "Spent"]

# Evaluations between two recommendations: to name the best point may take a fit of its own
RECOMMEND_EVERY = 10


class Spent(Exception):  # noqa: N818 - the regular end of every run, not an error
    """All evaluations of the run have been made."""


class Objective:
    """Counts, times and reports the evaluations of one run.

    `seconds` are those that the method needed to suggest a point: from the return of one evaluation to the call of
    the next, so the cost of the function itself is not in them. Points of a batch have equal shares.
    """

    def __init__(
        self,
        problem: Callable[[Array], float] | Task,
        dim: int,
        budget: int,
        observe: Callable[[Point, float, float], object] | None = None,
        *,
        batch: int = 1,
        observe_best: Callable[[int, float], object] | None = None,
    ) -> None:
        """`observe` is told every point, its value and the seconds of its suggestion.

        `observe_best` is told what was recommended: after how many evaluations, and the value without noise.
        """
        self.dim, self.budget, self.batch = dim, budget, batch
        self._task = problem if isinstance(problem, Task) else Task(problem)
        self._observe, self._observe_best = observe, observe_best
        self.points: list[Point] = []
        self.values: list[float] = []
        self.seconds: list[float] = []
        self.recommended: list[tuple[int, float]] = []
        self._since = time.perf_counter()

    @property
    def bounds(self) -> Array:
        """The box, (d, 2)."""
        return np.tile([-1.0, 1.0], (self.dim, 1))

    @property
    def space(self) -> Space | None:
        """The space of named parameters; None if the points are those of the box."""
        return self._task.space

    @property
    def noise(self) -> float:
        """The standard deviation of the noise, for methods that are to know it."""
        return self._task.noise

    @property
    def center(self) -> Array:
        """Where every method begins, (d,)."""
        return np.zeros(self.dim)

    @property
    def left(self) -> int:
        """Evaluations not made yet."""
        return self.budget - len(self.values)

    def __call__(self, x: ArrayLike) -> float:
        """The value at one point; raises `Spent` when the budget is used up."""
        return self.evaluate([x])[0]

    def evaluate(self, points: Sequence[Point]) -> list[float]:
        """The values at points that were all suggested before one of them is evaluated."""
        seconds = (time.perf_counter() - self._since) / len(points)
        checked = [self._checked(x) for x in points]
        values = []
        for point in checked:
            if not self.left:
                raise Spent
            values.append(float(self._task.evaluate(point)))
            self.points.append(point)
            self.values.append(values[-1])
            self.seconds.append(seconds)
            if self._observe is not None:
                self._observe(point, values[-1], seconds)
        self._since = time.perf_counter()
        return values

    @property
    def asks_for_best(self) -> bool:
        """Whether a point is to be recommended now."""
        return self._task.truth is not None and (len(self.values) % RECOMMEND_EVERY == 0 or not self.left)

    def recommend(self, x: Point) -> None:
        """Name the point that the method would use if nothing more could be evaluated."""
        truth = math.nan if self._task.truth is None else float(self._task.truth(self._checked(x)))
        self.recommended.append((len(self.values), truth))
        if self._observe_best is not None:
            self._observe_best(*self.recommended[-1])

    def _checked(self, x: Point) -> Point:
        if self.space is not None:
            if not isinstance(x, dict) or x.keys() != self.space.parameters.keys():
                known = ", ".join(self.space.parameters)
                raise ValueError(f"the objective expected a dict with {known}, got {x!r}.")
            return dict(x)
        point = np.array(x, dtype=float)
        if point.shape != (self.dim,):
            raise ValueError(f"the objective expected a point of shape ({self.dim},), got {point.shape}.")
        return point

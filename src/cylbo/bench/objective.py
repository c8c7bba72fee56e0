"""What a method of the lab is given: a function to call, a dimension, a budget. Nothing else.

Every method searches the box [-1, 1]^d, begins at its centre and calls the objective until that raises `Spent`.
"""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from cylbo.types import Array

__all__ = ["Objective", "Spent"]


class Spent(Exception):  # noqa: N818 - the regular end of every run, not an error
    """All evaluations of the run have been made."""


class Objective:
    """Counts, times and reports the evaluations of one run.

    `seconds` are those that the method needed to suggest a point: from the return of one evaluation to the call of
    the next, so the cost of the function itself is not in them.
    """

    def __init__(
        self,
        function: Callable[[Array], float],
        dim: int,
        budget: int,
        observe: Callable[[Array, float, float], object] | None = None,
    ) -> None:
        """`observe` is told every point (d,), its value and the seconds of its suggestion."""
        self.dim, self.budget = dim, budget
        self._function, self._observe = function, observe
        self.points: list[Array] = []
        self.values: list[float] = []
        self.seconds: list[float] = []
        self._since = time.perf_counter()

    @property
    def bounds(self) -> Array:
        """The box, (d, 2)."""
        return np.tile([-1.0, 1.0], (self.dim, 1))

    @property
    def center(self) -> Array:
        """Where every method begins, (d,)."""
        return np.zeros(self.dim)

    @property
    def left(self) -> int:
        """Evaluations not made yet."""
        return self.budget - len(self.values)

    def __call__(self, x: ArrayLike) -> float:
        """The value at one point (d,); raises `Spent` when the budget is used up."""
        seconds = time.perf_counter() - self._since
        point = np.array(x, dtype=float)
        if point.shape != (self.dim,):
            raise ValueError(f"the objective expected a point of shape ({self.dim},), got {point.shape}.")
        if not self.left:
            raise Spent
        value = float(self._function(point))
        self.points.append(point)
        self.values.append(value)
        self.seconds.append(seconds)
        if self._observe is not None:
            self._observe(point, value, seconds)
        self._since = time.perf_counter()
        return value

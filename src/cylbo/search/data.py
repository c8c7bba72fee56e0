"""All that is known of the objective, as the model sees it."""

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cylbo.types import Array

__all__ = ["N_JUDGED", "Known", "representative"]

SAME_POINT = 1e-9  # two points closer than this in every coordinate of the box [-1, 1]^d count as one
N_JUDGED = 10  # suggestions of the model, the first, by which it is judged once
LUCK, BLOW = -1.0, 3.0  # no surprise counts for more, in either direction
DISAPPOINTING = 0.75  # standard deviations, on average


@dataclass(frozen=True, eq=False)
class Known:
    """Evaluations in ball coordinates; what is not given does not matter to the run."""

    x: Array  # (n, d) evaluated
    y: Array  # (n,) their values
    pending: Array  # (q, d) asked for and not yet told
    failed: Array  # (f, d) evaluations that gave nothing
    noise: Array = field(default_factory=lambda: np.empty(0))  # (n,) told standard deviations of y, NaN where unknown
    constraints: Array = field(default_factory=lambda: np.empty((0, 0)))  # (n, m) met where <= 0, NaN where not told
    failed_lately: float = 0.0  # share of the last evaluations that failed
    exact: bool | None = None  # whether one point always gives one value; None: to be found out
    left_out: Array = field(default_factory=lambda: np.empty((0, 0)))  # (k, d) known points that there is no room for
    surprises: Array = field(default_factory=lambda: np.empty(0))  # (s,) by how many standard deviations the values of
    # the model's suggestions, by id, came out above what had been predicted
    n_unguided: int = 0  # points, open and failed ones too, that no model suggested

    @property
    def told_noise(self) -> Array | None:  # (n,)
        """Standard deviations that were told, 0 where none was; None if there are none at all."""
        return np.nan_to_num(self.noise) if np.isfinite(self.noise).any() else None

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:  # (n,)
        """Whether each evaluated point keeps every constraint that was told."""
        if not self.constraints.size:
            return np.ones(len(self.y), dtype=bool)
        return np.asarray(~(self.constraints > 0.0).any(-1))

    @cached_property
    def order(self) -> NDArray[np.intp]:  # (n,)
        """The evaluated points from the best on: by value while constraints are kept, then by how much they are not."""
        if self.allowed.all():
            return np.argsort(self.y, stable=True)
        excess = np.maximum(np.nan_to_num(self.constraints), 0.0)
        violation = (excess / np.maximum(np.nanmax(np.abs(self.constraints), axis=0), 1e-300)).sum(-1)
        return np.lexsort((self.y, np.where(self.allowed, 0.0, violation)))

    @cached_property
    def settled(self) -> bool:
        """Whether it is known if values are noisy: it was said, or a point was evaluated more than once."""
        return self.exact is not None or self.told_noise is not None or self.n_repeats > 0

    @cached_property
    def n_repeats(self) -> int:
        """Evaluations of points that had been evaluated before."""
        return len(self.x) - len(set(map(bytes, self.x)))

    @cached_property
    def noisy(self) -> bool:
        """Whether it is certain that values are noisy: it was said, or one point gave different ones."""
        if self.exact is not None:
            return not self.exact
        if (np.nan_to_num(self.noise) > 0.0).any():
            return True
        pairs = set(zip(map(bytes, self.x), self.y.tolist(), strict=True))
        return len(pairs) > len({x for x, _ in pairs})

    @property
    def disappointed(self) -> bool:
        """Whether the model's first suggestions came out plainly worse than predicted: it sees too little."""
        first = self.surprises[:N_JUDGED]
        return len(first) == N_JUDGED and float(np.clip(first, LUCK, BLOW).mean()) > DISAPPOINTING

    def thinned(self, count: int) -> Self:
        """At most so many of the evaluated points, and half as many of the failed ones, the last; itself if it is less.

        Whether values are noisy is known from all of them.
        """
        n, failed = len(self.y), self.failed[-max(1, count // 2) :]
        if n <= count and len(failed) == len(self.failed):
            return self
        keep = representative(self.order, count)
        rest = np.setdiff1d(np.arange(n), keep)
        return dataclasses.replace(
            self,
            x=self.x[keep],
            y=self.y[keep],
            noise=self.noise[keep] if len(self.noise) else self.noise,
            constraints=self.constraints[keep] if len(self.constraints) else self.constraints,
            failed=failed,
            exact=not self.noisy if self.settled else None,
            left_out=np.concatenate([self.x[rest], self.failed[: len(self.failed) - len(failed)]]),
        )

    def index(self, x: Array) -> int:  # (d,)
        """Which of the evaluated points this is, the first of equals."""
        return int(np.flatnonzero((self.x == x).all(-1))[0])

    def is_new(self, x: Array, *, repeat: bool = False) -> NDArray[np.bool_]:  # (m, d) -> (m,)
        """Whether each point differs from all that are open or failed and, unless it may repeat them, evaluated."""
        evaluated = [self.x, *([self.left_out] if len(self.left_out) else [])]
        seen = np.concatenate([self.pending, self.failed, *([] if repeat else evaluated)])
        return np.array([(np.abs(point - seen) > SAME_POINT).any(-1).all() for point in x], dtype=bool)


def representative(order: NDArray[np.intp], count: int) -> NDArray[np.intp]:  # (n,) -> (m,)
    """At most so many of the data that are ordered from the best on: one half the best, the others evenly from the
    rest; in the order in which they were evaluated.
    """
    if len(order) <= count:
        return np.arange(len(order))
    best, rest = order[: count // 2], order[count // 2 :]
    spread = np.linspace(0, len(rest) - 1, count - len(best)).round().astype(np.intp)
    return np.sort(np.concatenate([best, rest[spread]]))

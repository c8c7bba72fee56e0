"""The user's search space: bounds and centre, user units <-> ball coordinates.

Ball coordinates are those of the box scaled to [-1, 1]^d, measured from the centre. Conversions use nothing but the
point itself, so a point given back by the user lands exactly where it was: the centre at 0, in particular.
"""

import math
from collections.abc import Container, Mapping
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from cylbo.space.checks import FIXED, are_apart, checked_numbers
from cylbo.space.domain import Domain
from cylbo.types import Array, Bounds, Region

__all__ = ["Box"]


@runtime_checkable
class Ends(Protocol):
    """What `scipy.optimize.Bounds` has; one of the two may be a number for all parameters."""

    @property
    def lb(self) -> ArrayLike:
        """(d,) where the ranges begin."""

    @property
    def ub(self) -> ArrayLike:
        """(d,) where they end."""


class Box:
    """A box with a centre, and the ball around it."""

    def __init__(self, bounds: Bounds, center: ArrayLike | None = None, region: Region = "box") -> None:
        """Check everything; raise ValueError or TypeError with what was expected, what came and where."""
        self.low, self.high = _checked_bounds(bounds)
        if region not in ("box", "ball"):
            raise ValueError(f"region must be 'box' or 'ball', got {region!r}.")
        self.region = region
        self.center: Array = 0.5 * self.low + 0.5 * self.high
        if center is not None:
            self.center = self.checked_points(center, "center", ndim=1)
            for i in np.flatnonzero((self.center < self.low) | (self.center > self.high)):
                limits = f"({self.low[i]}, {self.high[i]})"
                raise ValueError(
                    f"center must lie inside the bounds, parameter {i} is {self.center[i]} and its bounds are {limits}."
                )
        self._center_in_box = self._to_box(self.center)
        self.center.flags.writeable = False
        self.domain = Domain.around(self._center_in_box, within_box=region == "box")
        with np.errstate(over="ignore"):
            reach = 0.5 * (self.domain.radius + 2.0) * (self.high - self.low)  # as `to_user` measures it
        if region == "ball" and not np.isfinite(reach).all():
            raise ValueError(
                "the ball around bounds as wide as these goes beyond the largest number there is; keep to region='box' "
                "or change the unit of the widest parameters."
            )

    n_points: float = math.inf  # different points
    params: None = None  # nothing has a name here

    @property
    def dim(self) -> int:
        """The number of parameters, d."""
        return len(self.low)

    @property
    def bounds(self) -> Array:  # (d, 2)
        """A (low, high) per parameter."""
        return np.stack([self.low, self.high], -1)

    def unseen(self, seen: Container[tuple[float, ...]], rng: Generator) -> Array:  # -> (d,)
        """A uniform point of the box, in user units, that is not among these."""
        while tuple((x := rng.uniform(self.low, self.high)).tolist()) in seen:
            pass
        return x

    def to_json(self) -> dict[str, object]:
        """What makes two spaces the same."""
        return {
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "center": self.center.tolist(),
            "region": self.region,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """The box that `to_json` was called on; raises ValueError, TypeError or KeyError on anything else."""
        return cls(np.stack([stored["low"], stored["high"]], -1), stored["center"], stored["region"])

    def centered(self, center: Array) -> Self:  # (d,)
        """The same box seen from another of its points."""
        return type(self)(np.stack([self.low, self.high], -1), center, self.region)

    def carried_over(self, old: object, x: Array) -> Array:  # (n, d) -> (n, d)
        """Points of an older box that this one contains, as they are.

        Raises ValueError, which says what is not allowed and what to do, if this box does not contain the older one.
        """
        if not isinstance(old, Box):
            raise ValueError("it has a Space, not plain bounds; keep to it")
        if self.region != old.region:
            raise ValueError(f"its region is {old.region!r}, not {self.region!r}; keep it")
        if self.dim != old.dim:
            raise ValueError(f"it has {old.dim} parameters, not {self.dim}; keep them: only a Space can grow")
        for i in np.flatnonzero((self.low > old.low) | (self.high < old.high)):
            were, are = f"({old.low[i]}, {old.high[i]})", f"({self.low[i]}, {self.high[i]})"
            raise ValueError(f"bounds {i} were {were}, and {are} lack some of it; keep or widen them")
        if self.region == "ball":  # less of a larger box, if the old centre lies nearer to the middle now
            now, was = (box.domain.radius * (box.high - box.low) for box in (self.centered(old.center), old))
            for i in np.flatnonzero(now < was * (1.0 - 1e-12)):
                raise ValueError(f"the ball about its centre gets narrower along parameter {i}; widen its bounds too")
        return x

    def _to_box(self, x: Array) -> Array:
        return 2.0 * ((x - self.low) / (self.high - self.low)) - 1.0

    def to_ball(self, x: Array) -> Array:  # (..., d) -> (..., d)
        """Points in user units as ball coordinates."""
        return np.asarray(self._to_box(x) - self._center_in_box)

    def to_user(self, z: Array) -> Array:  # (d,) -> (d,)
        """A point of the ball in user units, clipped to the bounds if the region is the box; the centre exactly."""
        if not z.any():
            return self.center.copy()
        x = self.low + 0.5 * (z + self._center_in_box + 1.0) * (self.high - self.low)
        return np.clip(x, self.low, self.high) if self.region == "box" else x

    def checked_points(self, points: ArrayLike, name: str, ndim: int) -> Array:
        """An own float64 copy of finite points of the right shape."""
        x = checked_numbers(points, name)
        expected = f"({self.dim},)" if ndim == 1 else f"(k, {self.dim})"
        if x.ndim != ndim or x.shape[-1] != self.dim:
            raise ValueError(f"{name} must have shape {expected}, got {x.shape}.")
        if not np.isfinite(x).all():
            raise ValueError(f"{name} must be finite, got {x}.")
        return x

    def checked_point(self, point: ArrayLike, name: str) -> Array:  # (d,) -> (d,)
        """A point of the search region."""
        return np.asarray(self._inside(self.checked_points(point, name, ndim=1)[None], name, "it does")[0])

    checked_wish = checked_point

    def checked_evaluated(self, points: ArrayLike, name: str) -> Array:  # (k, d) -> (k, d)
        """Points of the search region."""
        return self._inside(self.checked_points(points, name, ndim=2), name, "row {} does")

    def _inside(self, x: Array, name: str, culprit: str) -> Array:  # (k, d) -> (k, d)
        in_box = ((x >= self.low) & (x <= self.high)).all(-1)
        inside = in_box
        if self.region == "ball":
            # What is too far away to be squared is outside
            with np.errstate(over="ignore"):
                inside = in_box | self.domain.contains(self.to_ball(x))
        for i in np.flatnonzero(~inside):
            where = "the bounds" if self.region == "box" else f"the ball of radius {self.domain.radius:.6g}"
            raise ValueError(f"{name} must lie inside {where}; {culprit.format(i)} not: {x[i]}.")
        return x


def _checked_bounds(bounds: Bounds) -> tuple[Array, Array]:
    array = _stacked(bounds) if isinstance(bounds, Ends) else checked_numbers(bounds, "bounds")
    transpose = "transpose them: np.transpose(bounds)."
    if array.ndim != 2 or array.shape[1] != 2 or not len(array):
        expected = "bounds must have shape (d, 2), one (low, high) per parameter"
        cure = f"; {transpose}" if array.ndim == 2 and len(array) == 2 and array.size else "."
        raise ValueError(f"{expected}, got {array.shape}{cure}")
    by_column = len(array) == 2 and not isinstance(bounds, Ends) and (array[0] < array[1]).all()
    for i, (low, high) in enumerate(array.tolist()):
        if not (np.isfinite(low) and np.isfinite(high) and np.isfinite(high - low)):
            raise ValueError(f"bounds must be finite, and so their difference; parameter {i} has ({low}, {high}).")
        if low >= high:
            kind, cure = "reversed", "swap them"
            if low == high:
                kind, cure = "equal", FIXED
            was = f"those of parameter {i} are {kind}: ({low}, {high})"
            hint = f" They look like ([lows], [highs]): if so, {transpose}" if by_column else ""
            raise ValueError(f"bounds must have low < high; {was}; {cure}.{hint}")
        if not are_apart(low, high):
            raise ValueError(
                f"bounds of parameter {i} are too close to tell points between them apart: ({low}, {high})."
            )
    return array[:, 0].copy(), array[:, 1].copy()


def _stacked(bounds: Ends) -> Array:  # -> (d, 2)
    low, high = checked_numbers(bounds.lb, "bounds.lb"), checked_numbers(bounds.ub, "bounds.ub")
    try:
        return np.stack(np.broadcast_arrays(low, high), -1)
    except ValueError:
        expected = "bounds.lb and bounds.ub must have one number per parameter"
        raise ValueError(f"{expected}, got shapes {low.shape} and {high.shape}.") from None

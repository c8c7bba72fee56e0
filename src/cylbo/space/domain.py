"""Where suggestions may lie, in the coordinates of the model."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cylbo.numerics.polar import polar
from cylbo.types import Array

__all__ = ["Domain", "Lattice", "project_to_ball", "project_to_box"]


def project_to_ball(x: Array, radius: float) -> Array:  # (m, d) -> (m, d)
    """The nearest points of the ball of that radius about 0."""
    r, a = polar(x)
    return np.where((r <= radius)[..., None], x, radius * a)


def project_to_box(x: Array, low: Array, high: Array) -> Array:  # (m, d), (d,), (d,) -> (m, d)
    """The nearest points of the box [low, high]."""
    return np.clip(x, low, high)


@dataclass(frozen=True, eq=False)
class Lattice:
    """What of a domain is discrete, in ball coordinates."""

    snapped: Callable[[Array], Array]  # (m, d) -> (m, d) nearest points that can be evaluated
    redrawn: Callable[[Array, Generator], Array]  # (m, d) -> (m, d) neighbours that differ in something discrete
    jumps: NDArray[np.bool_]  # (d,) coordinates along which nothing can be climbed


@dataclass(frozen=True, eq=False)
class Domain:
    """Where suggestions may lie, in ball coordinates.

    The authors search the whole ball, so a suggestion may leave the user's box and the objective is extrapolated
    there (`within_box=False`). A real simulation rarely has a meaning outside its bounds, so ours is the box.
    """

    low: Array  # (d,) the box's lower corner
    high: Array  # (d,) the box's upper corner
    radius: float  # R, of the smallest ball about 0 that holds the box
    within_box: bool = True
    lattice: Lattice | None = None  # None: everything is continuous

    @classmethod
    def around(cls, center: Array, *, within_box: bool = True, lattice: Lattice | None = None) -> Self:  # (d,)
        """The box [-1, 1]^d seen from a point of it, and the ball that reaches its farthest corner."""
        low, high = -1.0 - center, 1.0 - center
        radius = float(np.linalg.norm(np.maximum(-low, high)))  # sqrt(d) from the middle
        return cls(low, high, radius, within_box, lattice)

    @property
    def dim(self) -> int:
        """The number of parameters, d."""
        return len(self.low)

    @property
    def has_choices(self) -> bool:
        """Whether a coordinate jumps from one value to the next: categories, and integers of few values."""
        return self.lattice is not None and bool(self.lattice.jumps.any())

    @property
    def middle(self) -> Array:  # (d,)
        """Of the box."""
        return np.asarray(0.5 * (self.low + self.high))

    def project(self, x: Array) -> Array:  # (m, d) -> (m, d)
        """The nearest points that may be proposed."""
        if not self.within_box:
            return project_to_ball(x, self.radius)
        x = project_to_box(x, self.low, self.high)
        return x if self.lattice is None else self.lattice.snapped(x)

    def contains(self, x: Array) -> NDArray[np.bool_]:  # (m, d) -> (m,)
        """Whether each point may be proposed."""
        if self.within_box:
            return np.asarray(((x >= self.low) & (x <= self.high)).all(-1))
        return np.asarray(np.linalg.norm(x, axis=-1) <= self.radius * (1.0 + 1e-12))  # a projection may round outwards

    def near(self, x: Array, reach: float) -> Self:  # (d,)
        """The part of the box within reach of a point in every coordinate; what jumps may go on jumping.

        Of a ball, which is not searched coordinate by coordinate, all.
        """
        if not self.within_box:
            return self
        jumps = False if self.lattice is None else self.lattice.jumps
        low = np.where(jumps, self.low, np.maximum(self.low, x - reach))
        high = np.where(jumps, self.high, np.minimum(self.high, x + reach))
        return dataclasses.replace(self, low=low, high=high)

    def from_unit_cube(self, u: Array) -> Array:  # (m, d) -> (m, d)
        """Points of [0, 1]^d spread over the user's box."""
        x = self.low + u * (self.high - self.low)
        return x if self.lattice is None else self.lattice.snapped(x)

"""The ball, its polar coordinates, and the part of it that may be proposed.

    x (m, d) points, measured from the ball's centre   r (m,) radii   a (m, d) unit directions   R the ball's radius

The user's box is [-1, 1]^d in scaled units; the ball B(0, R) circumscribes it (Oh et al. 2018, Sec. 4). With the
centre in the middle of the box R = sqrt(d).
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["Array", "Domain", "Lattice", "from_polar", "polar", "project_to_ball", "project_to_box"]

Array = NDArray[np.float64]


def polar(x: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, d)
    """Radius and direction, T(x) = (|x|, x / |x|). Oh et al. 2018, Eq. (5).

    The centre has no direction: x = 0 gives r = 0 and a = 0. What to do about that is decided in `center.py`.
    """
    # The largest coordinate is divided out first, so that squares neither overflow nor vanish
    largest = np.abs(x).max(-1, keepdims=True)
    scaled = x / np.where(largest > 0, largest, 1.0)
    length = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return (largest * length)[..., 0], scaled / np.where(length > 0, length, 1.0)


def from_polar(r: Array, a: Array) -> Array:  # (m,), (m, d) -> (m, d)
    """The point at radius r in direction a, T^-1(r, a) = r a. Oh et al. 2018, Eq. (5)."""
    return r[..., None] * a


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

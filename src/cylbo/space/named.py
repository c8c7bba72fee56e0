"""A space of named parameters with a centre: params <-> user vectors <-> ball coordinates.

The same to the optimizer as a `Box`, with dicts for what the user sees.
"""

import itertools
from collections.abc import Container, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.random import Generator

from cylbo.space.domain import Domain, Lattice
from cylbo.space.space import Space
from cylbo.types import Array

__all__ = ["Frame"]

FEW_POINTS = 100_000  # spaces up to this size are listed when random points no longer find what is left


class Frame:
    """A `Space` seen from a centre; points are vectors u (p,) in user units."""

    def __init__(self, space: Space, center: Mapping[str, Any] | None = None) -> None:
        """Check the centre: without one the defaults, the middle of every range, and the first of every choice."""
        self.space = space
        self.center: Array = space.middle if center is None else space.vector(center, "center")
        self.center.flags.writeable = False
        self._center_in_model = space.encode(self.center[None])[0]
        lattice = None if space.is_real else Lattice(self._snapped, self._redrawn, space.jumps)
        self.domain = Domain.around(self._center_in_model, lattice=lattice)

    @property
    def dim(self) -> int:
        """The number of scalars, p."""
        return self.space.size

    @property
    def bounds(self) -> Space:
        """What a box has as an array."""
        return self.space

    @property
    def n_points(self) -> float:
        """The number of different points."""
        return self.space.n_points

    def to_json(self) -> dict[str, Any]:
        """What makes two frames the same."""
        return {**self.space.to_json(), "center": self.center.tolist()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """The frame that `to_json` was called on; raises ValueError or LookupError, among others, on anything else."""
        return cls(Space.from_json(stored)).centered(np.array(stored["center"], np.float64))

    def centered(self, center: Array) -> Self:  # (p,)
        """The same space seen from another of its points."""
        return type(self)(self.space, self.space.params(center))

    def carried_over(self, old: object, u: Array) -> Array:  # (n, p of the old one) -> (n, p)
        """Points of an older frame whose space this one's contains; raises ValueError otherwise."""
        if not isinstance(old, Frame):
            raise ValueError("it has plain bounds, not a Space; keep to them")
        return self.space.carried_over(old.space, u)

    def to_ball(self, u: Array) -> Array:  # (n, p) -> (n, d)
        """Points in user units as ball coordinates."""
        return np.asarray(self.space.encode(u) - self._center_in_model)

    def to_user(self, z: Array) -> Array:  # (d,) -> (p,)
        """The point that can be evaluated nearest to one of the ball; the centre exactly."""
        return self.space.decode((z + self._center_in_model)[None])[0] if z.any() else self.center.copy()

    def params(self, u: Array) -> dict[str, Any]:  # (p,)
        """A point by name."""
        return self.space.params(u)

    def checked_point(self, point: Mapping[str, Any], name: str) -> Array:  # a dict -> (p,)
        """A point of the space."""
        return self.space.vector(point, name)

    def checked_wish(self, point: Mapping[str, Any], name: str) -> Array:  # a dict -> (p,)
        """The same; what the dict leaves out is at its default, or where the centre is if it has none."""
        if not isinstance(point, Mapping):
            return self.space.vector(point, name)
        return self.space.vector(self.params(self.center) | self.space.defaults | dict(point), name)

    def checked_evaluated(self, points: Sequence[Mapping[str, Any]], name: str) -> Array:  # (k,) dicts -> (k, p)
        """Points of the space."""
        if isinstance(points, Mapping | str) or not isinstance(points, Sequence):
            raise TypeError(f"{name} must be a list of dicts, got {points!r}.")
        rows = [self.space.vector(params, f"{name}[{i}]") for i, params in enumerate(points)]
        return np.array(rows).reshape(len(rows), self.space.size)

    def unseen(self, seen: Container[tuple[float, ...]], rng: Generator) -> Array:  # -> (p,)
        """A random point that is not among these; a small space is listed, so that the last one is found."""
        if self.n_points <= FEW_POINTS:
            each = itertools.chain.from_iterable([p.listed()] * p.size for p in self.space.parameters.values())
            left = [u for u in itertools.product(*each) if u not in seen]
            return np.array(left[int(rng.integers(len(left)))])
        while True:
            u: Array = self.space.decode(rng.uniform(-1.0, 1.0, (1, self.space.dim)))[0]
            if tuple(u.tolist()) not in seen:
                return u

    def _snapped(self, z: Array) -> Array:  # (m, d) -> (m, d)
        return np.asarray(self.space.snapped(z + self._center_in_model) - self._center_in_model)

    def _redrawn(self, z: Array, rng: Generator) -> Array:  # (m, d) -> (m, d)
        return np.asarray(self.space.redrawn(z + self._center_in_model, rng) - self._center_in_model)

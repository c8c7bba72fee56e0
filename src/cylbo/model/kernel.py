"""Correlations between points: the cylindrical kernel and the plain Matern of the paper's baseline.

    x (n, d) points of the ball, from its centre   r (n,) radii      t (n, m) cosines a.a'
    w (s, n) warped radii                          c (s, P+1) weights of the angular powers, on the simplex
    s hyperparameter samples, always the leading axis

Everything here has unit amplitude; `model/gp.py` multiplies by the amplitude where it matters. Derivatives are
written out:
they are short, and an automatic differentiation would spend most of a climb on its own overhead.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from cylbo.model.hyperparameters import Hyperparameters
from cylbo.numerics.polar import polar
from cylbo.types import Array

__all__ = [
    "Cylindrical",
    "Factor",
    "Kernel",
    "Matern",
    "Relation",
    "angular",
    "angular_slope",
    "kumaraswamy",
    "kumaraswamy_slope",
    "matern52",
    "matern52_slope",
    "squared_distances",
]

SQRT5 = math.sqrt(5.0)


def kumaraswamy(r: Array, ball_radius: float, alpha: Array, beta: Array) -> Array:  # (n,), (s,), (s,) -> (s, n)
    """Warped radii R (1 - (1 - u^alpha)^beta), u = r / R clipped to [0, 1]. Oh et al. 2018, Eq. (8).

    The paper writes the warp for radii in [0, 1]; the authors' code divides by R before and multiplies after, so that
    the lengthscale keeps the units of the ball.
    """
    u = np.clip(r / ball_radius, 0.0, 1.0)
    return np.asarray(ball_radius * (1.0 - (1.0 - u ** alpha[:, None]) ** beta[:, None]))


def kumaraswamy_slope(r: Array, ball_radius: float, alpha: Array, beta: Array) -> Array:  # -> (s, n)
    """Derivative of the warp by r > 0; zero beyond the rim, where the radius is clipped."""
    u, a, b = r / ball_radius, alpha[:, None], beta[:, None]
    inside = np.minimum(u, 1.0)
    slope = a * b * inside ** (a - 1.0) * (1.0 - inside**a) ** (b - 1.0)
    return np.asarray(np.where(u <= 1.0, slope, 0.0))


def matern52(z: Array) -> Array:
    """Matern-5/2 correlation (1 + sqrt5 z + 5/3 z^2) exp(-sqrt5 z) at z = distance / lengthscale >= 0."""
    z = SQRT5 * z
    value = z / 3.0  # in place from here: this is where most of a suggestion's elementwise work is done
    value += 1.0
    value *= z
    value += 1.0
    np.negative(z, out=z)
    value *= np.exp(z, out=z)
    return value


def matern52_slope(z: Array) -> Array:
    """Derivative of the correlation by z, divided by z: -5/3 (1 + sqrt5 z) exp(-sqrt5 z)."""
    z = SQRT5 * z
    return np.asarray(-5.0 / 3.0 * (1.0 + z) * np.exp(-z))


def squared_distances(x1: Array, x2: Array) -> Array:  # (n, d), (m, d) -> (n, m)
    """Of all pairs, by one matrix product; never negative."""
    square1 = np.einsum("nd,nd->n", x1, x1)
    square2 = square1 if x2 is x1 else np.einsum("nd,nd->n", x2, x2)
    squared = x1 @ (-2.0 * x2.T)
    squared += square1[:, None]
    squared += square2
    return np.maximum(squared, 0.0, out=squared)


def angular(t: Array, weights: Array) -> Array:  # (n, m), (s, P+1) -> (s, n, m)
    """Polynomial kernel of directions, sum_p c_p t^p at the cosines t = a.a'. Oh et al. 2018, Eq. (7)."""
    *lower, highest = weights.T[..., None, None]  # each (s, 1, 1)
    if not lower:
        return np.asarray(highest + np.zeros_like(t))
    value: Array = highest * t
    for coefficient in reversed(lower[1:]):
        value += coefficient
        value *= t
    value += lower[0]
    return value


def angular_slope(t: Array, weights: Array) -> Array:  # (n, m), (s, P+1) -> (s, n, m)
    """Derivative of `angular` by t."""
    powers = np.arange(1, weights.shape[-1])
    return angular(t, weights[:, 1:] * powers)


class Relation(NamedTuple):
    """What a kernel needs to know about a pair of point sets, before any hyperparameter."""

    r1: Array  # (n,)
    r2: Array  # (m,)
    t: Array  # (n, m): cosines for the cylinder, distances for the Matern


class Factor(NamedTuple):
    """One factor of a product kernel and the hyperparameters that it depends on (names as in
    `model/hyperparameters.py`).
    """

    names: tuple[str, ...]
    correlation: Callable[[Relation, Hyperparameters], Array]  # -> (s, n, m)


class Kernel(Protocol):
    """What is common to all kernels."""

    has_center: ClassVar[bool]  # the centre has no direction and is treated apart


@dataclass(frozen=True)
class Cylindrical:
    """K(x, x') = K_r(r, r') K_a(a, a'), Matern-5/2 on warped radii times a polynomial on directions. Eq. (6)."""

    ball_radius: float
    has_center: ClassVar[bool] = True

    def relate(self, x1: Array, x2: Array) -> Relation:  # (n, d), (m, d)
        """Radii and cosines of two sets of points, none of them the centre."""
        r1, a1 = polar(x1)
        r2, a2 = (r1, a1) if x2 is x1 else polar(x2)
        return Relation(r1, r2, a1 @ a2.T)

    def warp(self, r: Array, h: Hyperparameters) -> Array:  # (n,) -> (s, n)
        """The radii as the kernel sees them, in lengthscales; not bent without warping (BOCK-W)."""
        w = r[None] if h.warp is None else kumaraswamy(r, self.ball_radius, *h.warp)
        return np.asarray(w / h.lengthscale[:, None])

    def warp_slope(self, r: Array, h: Hyperparameters) -> Array:  # (n,) -> (s, n)
        """Derivative of `warp` by r > 0."""
        slope = np.ones_like(r)[None] if h.warp is None else kumaraswamy_slope(r, self.ball_radius, *h.warp)
        return np.asarray(slope / h.lengthscale[:, None])

    def radial(self, r1: Array, r2: Array, h: Hyperparameters) -> Array:  # (n,), (m,) -> (s, n, m)
        """K_r(r, r'), Matern-5/2 on the warped radii. Eq. (8)."""
        w1 = self.warp(r1, h)
        w2 = w1 if r2 is r1 else self.warp(r2, h)
        return matern52(_gaps(w1, w2))

    def radial_slope(self, r1: Array, r2: Array, h: Hyperparameters) -> Array:  # (n,), (m,) -> (s, n, m)
        """Derivative of K_r(r, r') by the first radius."""
        w1, w2 = self.warp(r1, h), self.warp(r2, h)
        gap = w1[:, :, None] - w2[:, None, :]
        return np.asarray(matern52_slope(np.abs(gap)) * gap * self.warp_slope(r1, h)[:, :, None])

    def angular(self, t: Array, h: Hyperparameters) -> Array:  # (n, m) -> (s, n, m)
        """K_a(a, a'), equal to 1 for equal directions since the weights sum to 1. Eq. (7)."""
        assert h.weights is not None
        return angular(t, h.weights)

    def angular_slope(self, t: Array, h: Hyperparameters) -> Array:  # (n, m) -> (s, n, m)
        """Derivative of K_a by the cosine."""
        assert h.weights is not None
        return angular_slope(t, h.weights)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The kernel as a product, for whoever wants to keep one factor while the other changes."""
        return (
            Factor(("log_alpha", "log_beta", "log_lengthscale2"), lambda at, h: self.radial(at.r1, at.r2, h)),
            Factor(("contrast",), lambda at, h: self.angular(at.t, h)),
        )


@dataclass(frozen=True)
class Matern:
    """Isotropic (non-ARD) Matern-5/2 on the points themselves: the paper's baseline "Matern"."""

    ball_radius: float
    has_center: ClassVar[bool] = False  # the centre is a point like any other

    def relate(self, x1: Array, x2: Array) -> Relation:  # (n, d), (m, d)
        """Distances of two sets of points."""
        r1 = np.linalg.norm(x1, axis=-1)
        r2 = r1 if x2 is x1 else np.linalg.norm(x2, axis=-1)
        return Relation(r1, r2, np.sqrt(squared_distances(x1, x2)))

    def euclidean(self, distance: Array, h: Hyperparameters) -> Array:  # (n, m) -> (s, n, m)
        """Matern-5/2 of the distance."""
        return matern52(distance / h.lengthscale[:, None, None])

    def euclidean_slope(self, distance: Array, h: Hyperparameters) -> Array:  # (n, m) -> (s, n, m)
        """Derivative by the first point, divided by its difference from the second."""
        ell = h.lengthscale[:, None, None]
        return np.asarray(matern52_slope(distance / ell) / ell**2)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The kernel as a product of one."""
        return (Factor(("log_lengthscale2",), lambda at, h: self.euclidean(at.t, h)),)


def _gaps(w1: Array, w2: Array) -> Array:  # (s, n), (s, m) -> (s, n, m)
    gaps = w1[:, :, None] - w2[:, None, :]
    return np.abs(gaps, out=gaps)

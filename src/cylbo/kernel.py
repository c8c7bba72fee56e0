"""Correlations between points: the cylindrical kernel and the plain Matern of the paper's baseline.

    x (n, d) points of the ball, from its centre   r (n,) radii      t (n, m) cosines a.a'
    w (s, n) warped radii                          c (s, P+1) weights of the angular powers, on the simplex
    s hyperparameter samples, always the leading axis

Everything here has unit amplitude; `gp.py` multiplies by the amplitude where it matters. The formulas take NumPy arrays
and torch tensors alike: the likelihood is evaluated hundreds of times on small matrices, where NumPy's calls are several
times cheaper, and the acquisition is climbed with torch's gradients.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch import Tensor

from cylbo.arrays import AnyArray, exp
from cylbo.geometry import polar
from cylbo.hyper import Hyperparameters

__all__ = ["Cylindrical", "Factor", "Matern", "Relation", "angular", "kumaraswamy", "matern52"]

SQRT5 = math.sqrt(5.0)


def kumaraswamy(r: AnyArray, ball_radius: float, alpha: AnyArray, beta: AnyArray) -> AnyArray:  # (n,), (s,), (s,) -> (s, n)
    """Warped radii R (1 - (1 - u^alpha)^beta), u = r / R clipped to [0, 1]. Oh et al. 2018, Eq. (8).

    The paper writes the warp for radii in [0, 1]; the authors' code divides by R before and multiplies after, so that
    the lengthscale keeps the units of the ball.
    """
    u = (r / ball_radius).clip(0.0, 1.0)
    return ball_radius * (1.0 - (1.0 - u ** alpha[:, None]) ** beta[:, None])


def matern52(z: AnyArray) -> AnyArray:
    """Matern-5/2 correlation (1 + sqrt5 z + 5/3 z^2) exp(-sqrt5 z) at z = distance / lengthscale >= 0."""
    z = SQRT5 * z
    return (1.0 + z * (1.0 + z / 3.0)) * exp(-z)


def angular(t: AnyArray, weights: AnyArray) -> AnyArray:  # (n, m), (s, P+1) -> (s, n, m)
    """Polynomial kernel of directions, sum_p c_p t^p at the cosines t = a.a'. Oh et al. 2018, Eq. (7)."""
    c = [weights[:, p, None, None] for p in range(weights.shape[-1])]
    value = c[-1] * t if len(c) > 1 else 0.0 * t
    for coefficient in c[-2:0:-1]:
        value = (value + coefficient) * t
    return value + c[0]


class Relation(NamedTuple):
    """What a kernel needs to know about a pair of point sets, before any hyperparameter."""

    r1: AnyArray  # (n,)
    r2: AnyArray  # (m,)
    t: AnyArray  # (n, m): cosines for the cylinder, squared distances for the Matern

    def numpy(self) -> "Relation":
        """The same as NumPy arrays, sharing memory."""
        return Relation(self.r1.numpy(), self.r2.numpy(), self.t.numpy())


class Factor(NamedTuple):
    """One factor of a product kernel and the hyperparameters that it depends on (names as in `hyper.py`)."""

    names: tuple[str, ...]
    correlation: Callable[[Relation, Hyperparameters], AnyArray]  # -> (s, n, m)


@dataclass(frozen=True)
class Cylindrical:
    """K(x, x') = K_r(r, r') K_a(a, a'), Matern-5/2 on warped radii times a polynomial on directions. Eq. (6)."""

    ball_radius: float
    has_center: ClassVar[bool] = True  # the centre has no direction and is treated apart

    def relate(self, x1: Tensor, x2: Tensor) -> Relation:  # (n, d), (m, d)
        """Radii and cosines of two sets of points, none of them the centre."""
        r1, a1 = polar(x1)
        r2, a2 = (r1, a1) if x2 is x1 else polar(x2)
        return Relation(r1, r2, a1 @ a2.mT)

    def warp(self, r: AnyArray, h: Hyperparameters) -> AnyArray:  # (n,) -> (s, n)
        """The radii as the kernel sees them; the identity without warping (BOCK-W)."""
        if h.warp is None:
            return r[None]  # (1, n): the same for every sample
        return kumaraswamy(r, self.ball_radius, *h.warp)

    def radial(self, r1: AnyArray, r2: AnyArray, h: Hyperparameters) -> AnyArray:  # (n,), (m,) -> (s, n, m)
        """K_r(r, r'), Matern-5/2 on the warped radii. Eq. (8)."""
        w1 = self.warp(r1, h) / h.lengthscale[:, None]
        w2 = w1 if r2 is r1 else self.warp(r2, h) / h.lengthscale[:, None]
        return matern52(abs(w1[:, :, None] - w2[:, None, :]))

    def angular(self, t: AnyArray, h: Hyperparameters) -> AnyArray:  # (n, m) -> (s, n, m)
        """K_a(a, a'), equal to 1 for equal directions since the weights sum to 1. Eq. (7)."""
        assert h.weights is not None
        return angular(t, h.weights)

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

    def relate(self, x1: Tensor, x2: Tensor) -> Relation:  # (n, d), (m, d)
        """Squared distances of two sets of points."""
        r1 = x1.norm(dim=-1)
        r2 = r1 if x2 is x1 else x2.norm(dim=-1)
        squared = r1[:, None] ** 2 + r2**2 - 2.0 * (x1 @ x2.mT)
        return Relation(r1, r2, squared.clip(min=0.0))

    def euclidean(self, squared_distance: AnyArray, h: Hyperparameters) -> AnyArray:  # (n, m) -> (s, n, m)
        """Matern-5/2 of the distance. Below 1e-15 a distance counts as 0 and its gradient, too."""
        distance = squared_distance.clip(min=1e-30) ** 0.5
        return matern52(distance / h.lengthscale[:, None, None])

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The kernel as a product of one."""
        return (Factor(("log_lengthscale2",), lambda at, h: self.euclidean(at.t, h)),)

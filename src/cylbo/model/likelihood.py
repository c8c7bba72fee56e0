"""The log posterior density of hyperparameters: what the slice sampler walks on.

    R (n, n) correlations of the data        K = R + (stabiliser + noise / A) I; the covariance is A K
    L lower Cholesky factor of K             q (n, n) row i: data with the centre in training direction a_i

Neighbouring thetas of a sampler that moves one coordinate at a time share most of their work, so it is kept:
- a factor of the kernel (radial, angular) is computed anew only when one of its own hyperparameters changed;
- the Cholesky factor and everything solved with it is kept while the mean or the common shift of the logits move: the
  likelihood is quadratic in the one and constant in the other;
- a theta whose density is certainly below the `floor` is turned away after the Cholesky factor alone, before the
  triangular solve with n right-hand sides that the centre costs (three times as much).
All of it is exact: the value returned for a theta above the floor is the same to rounding.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cylbo.errors import NotPositiveDefiniteError
from cylbo.model.centred import CenterObservations
from cylbo.model.gp import JITTERS, Data
from cylbo.model.hyperparameters import Hyperparameters, Layout, Vector
from cylbo.model.kernel import Cylindrical, Matern
from cylbo.numerics.linalg import cholesky, solve_lower
from cylbo.types import Array

__all__ = ["LogPosterior"]


@dataclass
class _TowardsCenter:
    """What a factorised covariance says about the centre, seen in each training direction."""

    k_center: Array  # (n,) K_r(0, r_N)
    angular: Array  # (n, n) K_a of the data: q = angular * k_center
    y: Array  # (n,) q K^-1 y
    one: Array  # (n,) q K^-1 1
    explained: Array | None = None  # (n,) diagonal of q K^-1 q^T; costs most, made when needed


@dataclass
class _Factorised:
    """Everything that depends on K alone."""

    L: Array  # (n, n)
    tau: float  # nugget with jitter
    half_log_determinant: float
    yy: float  # y^T K^-1 y, with y from the offset on
    y1: float  # y^T K^-1 1
    oo: float  # 1^T K^-1 1
    center: _TowardsCenter | None


class LogPosterior:
    """theta -> log likelihood + log prior, with the memory described above."""

    def __init__(
        self,
        data: Data,
        kernel: Cylindrical | Matern,
        layout: Layout,
        *,
        stabilizer: float,
        jitters: Sequence[float] = JITTERS,
    ) -> None:
        """Prepare what no hyperparameter changes: radii and cosines, or distances."""
        self.kernel, self.layout = kernel, layout
        self.stabilizer, self.jitters = stabilizer, jitters
        self.factorisations = 0  # so far: the unit of cost
        self._n = len(data.y)
        # Only y - mean enters; measured from a middle value, the quadratic below does not cancel when y is far from 0
        self._offset = float(np.mean(data.y if self._n else data.center_y))
        self._targets = np.stack([data.y - self._offset, np.ones(self._n)], -1)  # (n, 2)
        self._center = CenterObservations.of(data.center_y - self._offset) if len(data.center_y) else None
        self._relation = kernel.relate(data.x, data.x)
        self._factors = [(list(layout.where(f.names)), f.correlation) for f in kernel.factors]
        self._parts: list[tuple[bytes, Array]] = [(b"", np.empty(0))] * len(self._factors)
        self._shape = sorted({i for where, _ in self._factors for i in where} | {0, 1})  # all but mean and log_c0
        self._last: tuple[bytes, _Factorised | None] = (b"", None)

    def __call__(self, theta: Vector, floor: float = -math.inf) -> float:
        """The log density of theta up to a constant; or any number below `floor` if that is where it lies."""
        prior = self.layout.log_prior(theta)
        if prior == -math.inf:
            return prior
        work = self._factorise(theta)
        if work is None:
            return -math.inf
        value = prior + self._log_likelihood(work, math.exp(theta[0]), float(theta[-1]) - self._offset, floor - prior)
        return value if math.isfinite(value) else -math.inf

    def _log_likelihood(self, work: _Factorised, amplitude: float, mean: float, floor: float) -> float:
        quadratic = work.yy - 2.0 * mean * work.y1 + mean * mean * work.oo
        value = -0.5 * (self._n * math.log(2.0 * math.pi * amplitude) + quadratic / amplitude)
        value -= work.half_log_determinant
        if work.center is None or self._center is None:
            return value
        towards = work.center
        if not self._n:  # no data, no directions: the prior at the centre is the same in all
            return value + self._center.log_density(np.array([mean]), np.zeros(1), amplitude, work.tau)
        predicted = mean + towards.y - mean * towards.one
        if towards.explained is None:
            bound = value + self._center.log_density_bound(predicted, towards.k_center, amplitude, work.tau)
            if bound < floor:
                return bound
            f = solve_lower(work.L, (towards.angular * towards.k_center).T)
            towards.explained = np.einsum("ij,ij->j", f, f)
        return value + self._center.log_density(predicted, towards.explained, amplitude, work.tau)

    def _factorise(self, theta: Vector) -> _Factorised | None:
        """The factor at theta, from memory when only the mean or the logits' shift changed; None if there is none."""
        key = theta[self._shape].tobytes()
        if self._last[0] != key:
            self.factorisations += 1
            try:
                self._last = key, self._factorise_anew(theta)
            except NotPositiveDefiniteError:
                self._last = key, None
        return self._last[1]

    def _factorise_anew(self, theta: Vector) -> _Factorised:
        h = self.layout.unpack(theta[None])
        nugget = self.stabilizer + float(h.noise_ratio[0])
        L, jitter = cholesky(self._correlation(theta, h), nugget, self.jitters)
        white = solve_lower(L, self._targets)  # (n, 2)
        (yy, y1), (_, oo) = (white.T @ white).tolist()
        center = None if self._center is None else self._towards_center(L, white, h)
        return _Factorised(L, nugget + jitter, float(np.log(L.diagonal()).sum()), yy, y1, oo, center)

    def _towards_center(self, L: Array, white: Array, h: Hyperparameters) -> _TowardsCenter:
        assert isinstance(self.kernel, Cylindrical)
        k_center = self.kernel.radial(np.zeros(1), self._relation.r2, h)[0, 0]
        angular = self._parts[-1][1]  # the last factor, which `_correlation` has just left there
        y, one = (angular @ (k_center[:, None] * solve_lower(L, white, transposed=True))).T
        return _TowardsCenter(k_center, angular, y, one)

    def _correlation(self, theta: Vector, h: Hyperparameters) -> Array:  # -> (n, n)
        for i, (where, correlation) in enumerate(self._factors):
            key = theta[where].tobytes()
            if self._parts[i][0] != key:
                self._parts[i] = key, correlation(self._relation, h)[0]
        parts = [part for _, part in self._parts]
        return parts[0] if len(parts) == 1 else parts[0] * parts[1]

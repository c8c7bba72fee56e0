"""The GP of the cylindrical kernel when the ball's centre is among the data or the queries.

The centre has a radius, 0, but no direction, so its covariance with other points is not defined by the kernel. Oh et
al. 2018, Sec. 3.3, give it the direction a* of the query:

    k  = K(N, x*)                     data with the query
    q  = K_r(r_N, 0) K_a(a_N, a*)     data with the centre, seen in direction a*
    k0 = K_r(r*, 0)                   query with the centre, K_a(a*, a*) = 1

For one query this is the exact posterior of an ordinary GP on n + 1 points, one of them at (0, a*), computed in block
form from the factor of the n others. Different queries see different GPs: there is no joint posterior of several
queries, whatever the supplement's theorem says (docs/errata.md).

Left open by the paper, and settled here:
- several observations at the centre act as their average with a k-th of the nugget, which is exact;
- in the likelihood the centre is seen in each training direction in turn and the log densities of its observations are
  averaged (the authors' code; the paper is silent);
- a query at the centre itself uses the same average: the mixture of the posteriors at (0, a_i) over the training
  directions a_i, given by its mean and variance (the authors' code forbids the question).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from cylbo.geometry import polar
from cylbo.gp import GP, JITTERS, SMALLEST_VARIANCE, Data, Posterior, dot
from cylbo.hyper import Hyperparameters
from cylbo.kernel import Cylindrical
from cylbo.linalg import Array

__all__ = ["CenterObservations", "CenteredGP"]


class CenteredGP(GP):
    """GPs of the cylindrical kernel, with any number of observations at the centre."""

    kernel: Cylindrical

    def __init__(
        self,
        data: Data,
        kernel: Cylindrical,
        h: Hyperparameters,
        *,
        stabilizer: float,
        boundary: bool = False,
        jitters: Sequence[float] = JITTERS,
    ) -> None:
        """Factorise; `boundary` adds BOCK+B's fake observation at the rim to every query's variance."""
        super().__init__(data, kernel, h, stabilizer=stabilizer, jitters=jitters)
        self.boundary = boundary
        self.r, self.a = polar(data.x)
        zero = data.x.new_zeros(1)
        self.k_center = kernel.radial(zero, self.r, self.h)  # (s, 1, n) K_r(0, r_N)

    def subset(self, samples: slice) -> Self:
        """The GPs of some of the samples, sharing the factors."""
        part = super().subset(samples)
        part.k_center = self.k_center[samples]
        return part

    def posterior(self, x: Tensor) -> Posterior:  # (m, d)
        """Posterior mean and variance of the latent function at the queries, each seeing the centre its own way."""
        r, a = polar(x)
        at_center = r == 0
        if not at_center.any():
            return self._posterior(r, a @ self.a.mT)
        mean = x.new_empty(len(self), len(x))
        variance = torch.empty_like(mean)
        away = self._posterior(r[~at_center], a[~at_center] @ self.a.mT)
        mean[:, ~at_center], variance[:, ~at_center] = away.mean, away.variance
        here = self._posterior_at_center()
        mean[:, at_center], variance[:, at_center] = here.mean, here.variance
        return Posterior(mean, variance)

    def _posterior_at_center(self) -> Posterior:
        """Moments of the equal mixture over the training directions; without any, of one arbitrary direction."""
        if len(self.a):
            each = self._posterior(torch.zeros_like(self.r), self.a @ self.a.mT)  # (s, n)
        else:
            each = self._posterior(self.r.new_zeros(1), self.r.new_zeros(1, 0))
        mean = each.mean.mean(-1, keepdim=True)
        spread = (each.mean - mean).square().mean(-1, keepdim=True)
        return Posterior(mean, each.variance.mean(-1, keepdim=True) + spread)

    def _posterior(self, r: Tensor, t: Tensor) -> Posterior:  # (m,), (m, n)
        """Block form of the (n + 1)- or, with the fake point at the rim, (n + 2)-point posterior."""
        kernel, h, m = self.kernel, self.h, len(r)
        angular = kernel.angular(t, h)  # (s, m, n)
        rows = [kernel.radial(r, self.r, h) * angular]
        if len(self.data.center_y):
            rows.append(self.k_center * angular)
        if self.boundary:
            rim = r.new_tensor([kernel.ball_radius])
            rows.append(kernel.radial(rim, self.r, h) * angular)
        whitened = self.whiten(torch.cat(rows, 1))  # one product with W for all of them
        e, *others = whitened.split(m, 1)
        mean = h.mean[:, None] + dot(e, self.g)
        variance = 1.0 + self.stabilizer - dot(e, e)

        if len(self.data.center_y):
            f, *others = others
            zero = r.new_zeros(1)
            p = self._pivot(f).sqrt()
            k_bar = (kernel.radial(r, zero, h).squeeze(-1) - dot(f, e)) / p
            y_bar = (self.data.center_y.mean() - h.mean[:, None] - dot(f, self.g)) / p
            mean = mean + k_bar * y_bar
            variance = variance - k_bar**2

        if self.boundary:  # differs from the mean: the fake point has no value, so only the variance knows it
            (b,) = others
            rim_query = kernel.radial(r, rim, h).squeeze(-1) - dot(b, e)
            rim_variance = 1.0 + self.tau[:, None] - dot(b, b)
            if len(self.data.center_y):
                q_bar = (kernel.radial(zero, rim, h).squeeze(-1) - dot(f, b)) / p
                rim_query, rim_variance = rim_query - k_bar * q_bar, rim_variance - q_bar**2
            variance = variance - rim_query**2 / rim_variance.clamp_min(SMALLEST_VARIANCE)
        return Posterior(mean, self.scaled_variance(variance))

    def _pivot(self, f: Tensor) -> Tensor:  # (s, m, n) -> (s, m)
        """p^2, the variance of the average observation at the centre given the data, of unit amplitude."""
        nugget = self.tau / len(self.data.center_y)
        return (1.0 + nugget[:, None] - dot(f, f)).clamp_min(SMALLEST_VARIANCE)


@dataclass(frozen=True)
class CenterObservations:
    """The observations at the centre as the likelihood sees them: their number, average and scatter."""

    count: int
    average: float
    scatter: float  # sum of squared deviations from the average

    @classmethod
    def of(cls, y: Array) -> "CenterObservations":  # (k,)
        """Summarise k >= 1 observations."""
        average = float(y.mean())
        return cls(len(y), average, float(((y - average) ** 2).sum()))

    def log_density(
        self,
        predicted: Array,  # (n,) mean given the data, the centre seen in each training direction
        explained: Array,  # (n,) |f_i|^2, the part of unit variance that the data explain
        amplitude: float,
        tau: float,
    ) -> float:
        """Log density of the observations given the data, averaged over the training directions.

        (1/n) sum_i log N(average; predicted_i, A p_i^2), p_i^2 = 1 + tau/k - explained_i, plus what replicates say of
        each other.
        """
        pivot = np.maximum(1.0 + tau / self.count - explained, SMALLEST_VARIANCE)
        return self._averaged((self.average - predicted) ** 2 / amplitude, pivot, amplitude, tau)

    def log_density_bound(
        self,
        predicted: Array,  # (n,)
        k_center: Array,  # (n,) K_r(r_i, 0)
        amplitude: float,
        tau: float,
    ) -> float:
        """An upper bound of `log_density` that needs no triangular solve with n right-hand sides.

        The pivot lies between tau/k (all explained) and 1 + tau/k - K_r(r_i, 0)^2 / (1 + tau) (only the i-th datum, which
        has the same direction, is used); log N as a function of its variance peaks where that is the squared gap.
        """
        low = max(tau / self.count, SMALLEST_VARIANCE)
        high = np.maximum(1.0 + tau / self.count - k_center**2 / (1.0 + tau), low)
        gap2 = (self.average - predicted) ** 2 / amplitude
        return self._averaged(gap2, np.clip(gap2, low, high), amplitude, tau)

    def _averaged(self, gap2: Array, pivot: Array, amplitude: float, tau: float) -> float:
        average = float((gap2 / pivot + np.log(pivot)).mean()) if len(pivot) else math.nan
        value = -0.5 * (average + math.log(2.0 * math.pi * amplitude))
        if self.count > 1:  # replicates: their scatter against the nugget
            nugget = amplitude * tau
            value -= 0.5 * (
                (self.count - 1) * math.log(2.0 * math.pi * nugget) + math.log(self.count) + self.scatter / nugget
            )
        return value

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

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cylbo.model.gp import GP, JITTERS, SMALLEST_VARIANCE, Data, Posterior, dot
from cylbo.model.hyperparameters import Hyperparameters
from cylbo.model.kernel import Cylindrical
from cylbo.numerics.polar import polar
from cylbo.types import Array

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

    def posterior(self, x: Array) -> Posterior:  # (m, d)
        """Posterior mean and variance of the latent function at the queries, each seeing the centre its own way."""
        r, a = polar(x)
        at_center = r == 0
        if not at_center.any():
            return self._posterior(r, a)
        mean = np.empty((len(self), len(x)))
        variance = np.empty_like(mean)
        away = self._posterior(r[~at_center], a[~at_center])
        mean[:, ~at_center], variance[:, ~at_center] = away.mean, away.variance
        mean[:, at_center], variance[:, at_center] = self._moments_at_center()

        def pullback(mean_bar: Array, variance_bar: Array) -> Array:
            x_bar = np.zeros_like(x)  # the centre has no direction and so no slope
            x_bar[~at_center] = away.pullback(mean_bar[:, ~at_center], variance_bar[:, ~at_center])
            return x_bar

        return Posterior(mean, variance, pullback)

    def _moments_at_center(self) -> tuple[Array, Array]:  # (s, 1), (s, 1)
        """Moments of the equal mixture over the training directions; without any, of one arbitrary direction."""
        directions = self.a if len(self.a) else np.eye(1, self.data.x.shape[-1])
        each = self._posterior(np.zeros(len(directions)), directions)  # (s, n)
        mean = each.mean.mean(-1, keepdims=True)
        spread = ((each.mean - mean) ** 2).mean(-1, keepdims=True)
        return mean, each.variance.mean(-1, keepdims=True) + spread

    def _posterior(self, r: Array, a: Array) -> Posterior:  # (m,), (m, d)
        """Block form of the (n + 1)-point posterior or, with the fake point at the rim, of the (n + 2)-point one.

        Whitened: e the query, f the centre, b the rim. First the data explain each of them, then the centre explains
        what is left (kappa of the query, eta of its own value, omega of the rim), then the rim.
        """
        kernel, h, m = self.kernel, self.h, len(r)
        zero, rim = np.zeros(1), np.array([kernel.ball_radius])
        has_center, boundary = len(self.data.center_y) > 0, self.boundary
        t = a @ self.a.T
        angular = kernel.angular(t, h)  # (s, m, n)
        radials = [kernel.radial(r, self.r, h)]  # of the query, the centre, the rim: (s, m or 1, n)
        radials += [kernel.radial(zero, self.r, h)] * has_center + [kernel.radial(rim, self.r, h)] * boundary
        # One product with W for all of them
        whitened = self.whiten(np.concatenate([radial * angular for radial in radials], 1))
        e, *others = (whitened[:, i * m : (i + 1) * m] for i in range(len(radials)))
        mean = h.mean[:, None] + dot(e, self.g)
        variance = 1.0 + self.stabilizer - dot(e, e)

        if has_center:
            f = others[0]
            p = np.sqrt(self._pivot(f))
            kappa = (kernel.radial(r, zero, h)[..., 0] - dot(f, e)) / p
            eta = (self.data.center_y.mean() - h.mean[:, None] - dot(f, self.g)) / p
            mean = mean + kappa * eta
            variance = variance - kappa**2

        if boundary:  # the fake point has no value, so only the variance knows it
            b = others[-1]
            gap = kernel.radial(r, rim, h)[..., 0] - dot(b, e)
            rest = 1.0 + self.tau[:, None] - dot(b, b)
            if has_center:
                omega = (kernel.radial(zero, rim, h)[..., 0] - dot(f, b)) / p
                gap, rest = gap - kappa * omega, rest - omega**2
            rest = np.maximum(rest, SMALLEST_VARIANCE)
            variance = variance - gap**2 / rest

        def pullback(mean_bar: Array, variance_bar: Array) -> Array:
            v_bar = self.unit_variance_bar(variance, variance_bar)
            e_bar = mean_bar[..., None] * self.g[:, None, :] - 2.0 * v_bar[..., None] * e
            whitened_bars = [e_bar]
            radial_bars: list[tuple[Array, Array]] = []  # places and derivatives by K_r(r, place)
            if boundary:
                gap_bar = -2.0 * v_bar * gap / rest
                rest_bar = np.where(rest > SMALLEST_VARIANCE, v_bar * (gap / rest) ** 2, 0.0)
                b_bar = -gap_bar[..., None] * e - 2.0 * rest_bar[..., None] * b
                e_bar -= gap_bar[..., None] * b
            if has_center:
                kappa_bar = mean_bar * eta - 2.0 * v_bar * kappa
                eta_bar = mean_bar * kappa
                f_bar = -(eta_bar / p)[..., None] * self.g[:, None, :]
                p_bar = -eta_bar * eta / p
                if boundary:
                    kappa_bar -= gap_bar * omega
                    omega_bar = -gap_bar * kappa - 2.0 * rest_bar * omega
                    b_bar -= (omega_bar / p)[..., None] * f
                    f_bar -= (omega_bar / p)[..., None] * b
                    p_bar -= omega_bar * omega / p
                p_bar -= kappa_bar * kappa / p
                p_bar = np.where(p**2 > SMALLEST_VARIANCE, p_bar, 0.0)
                e_bar -= (kappa_bar / p)[..., None] * f
                f_bar -= (kappa_bar / p)[..., None] * e + (p_bar / p)[..., None] * f
                whitened_bars.append(f_bar)
                radial_bars.append((zero, kappa_bar / p))
            if boundary:
                whitened_bars.append(b_bar)
                radial_bars.append((rim, gap_bar))
            stacked = np.concatenate(whitened_bars, 1) @ self.W
            bars = [stacked[:, i * m : (i + 1) * m] for i in range(len(radials))]
            angular_bar = functools.reduce(operator.add, (k_r * bar for k_r, bar in zip(radials, bars, strict=True)))
            t_bar = (angular_bar * kernel.angular_slope(t, h)).sum(0)  # (m, n)
            r_bar = (kernel.radial_slope(r, self.r, h) * angular * bars[0]).sum((0, -1))  # (m,)
            for place, bar in radial_bars:
                r_bar += (kernel.radial_slope(r, place, h)[..., 0] * bar).sum(0)
            a_bar = t_bar @ self.a
            across = a_bar - (a_bar * a).sum(-1, keepdims=True) * a  # directions have unit length
            return np.asarray(r_bar[:, None] * a + across / r[:, None])

        return Posterior(mean, self.scaled_variance(variance), pullback)

    def _pivot(self, f: Array) -> Array:  # (s, m, n) -> (s, m)
        """p^2, the variance of the average observation at the centre given the data, of unit amplitude."""
        nugget = self.tau / len(self.data.center_y)
        return np.maximum(1.0 + nugget[:, None] - dot(f, f), SMALLEST_VARIANCE)


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

        The pivot lies between tau/k (all explained) and 1 + tau/k - K_r(r_i, 0)^2 / (1 + tau) (only the i-th datum,
        which has the same direction, is used); log N as a function of its variance peaks where that is the squared gap.
        """
        low = max(tau / self.count, SMALLEST_VARIANCE)
        high = np.maximum(1.0 + tau / self.count - k_center**2 / (1.0 + tau), low)
        gap2 = (self.average - predicted) ** 2 / amplitude
        return self._averaged(gap2, np.clip(gap2, low, high), amplitude, tau)

    def _averaged(self, gap2: Array, pivot: Array, amplitude: float, tau: float) -> float:
        average = float((gap2 / pivot + np.log(pivot)).mean())
        value = -0.5 * (average + math.log(2.0 * math.pi * amplitude))
        if self.count > 1:  # replicates: their scatter against the nugget
            nugget = amplitude * tau
            value -= 0.5 * (
                (self.count - 1) * math.log(2.0 * math.pi * nugget) + math.log(self.count) + self.scatter / nugget
            )
        return value

"""Hyperparameters: named values <-> the flat vector that is sampled, its support and its prior.

    theta (p,) flat vector, in this order (entries in brackets only where the kernel has them):

    log_amplitude      log A, the kernel's variance
    log_noise          log of the noise variance
    [log_alpha]        log of the warp's first exponent, <= 0
    [log_beta]         log of the warp's second exponent, >= 0
    log_lengthscale2   log of the *squared* lengthscale, as in the authors' code
    [log_c0]           logit of c_0; moves all logits along with it
    [contrast] x P     logit of c_p minus logit of c_0, p = 1..P
    mean               the constant mean

The authors sample the P+1 logits along their own axes. These coordinates are a linear map of theirs with determinant
1, so the posterior is the same; but along `log_c0` the covariance does not change, nor along `mean`: two of the ten
directions need no new factorisation (`model/likelihood.py`). (A third, amplitude and noise together, would be as
cheap, but the chain then sticks where one of the two lies at a bound, which with raw values it often does.) No
Jacobian of exp is in the prior: that is the posterior the authors used.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cylbo.types import Array

__all__ = ["Hyperparameters", "Layout", "Priors"]

Vector = Array  # (p,) or, one per row, (s, p)


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """A batch of s hyperparameter settings in natural units."""

    amplitude: Array  # (s,) A, a variance
    noise_ratio: Array  # (s,) noise variance / A
    lengthscale: Array  # (s,)
    mean: Array  # (s,)
    warp: tuple[Array, Array] | None = None  # alpha, beta, each (s,)
    weights: Array | None = None  # (s, P+1) on the simplex

    def __len__(self) -> int:
        return len(self.amplitude)

    def __getitem__(self, samples: slice) -> "Hyperparameters":
        return Hyperparameters(
            self.amplitude[samples],
            self.noise_ratio[samples],
            self.lengthscale[samples],
            self.mean[samples],
            None if self.warp is None else (self.warp[0][samples], self.warp[1][samples]),
            None if self.weights is None else self.weights[samples],
        )


@dataclass(frozen=True)
class Priors:
    """Supports and prior densities of the authors' code (they are not in the paper)."""

    log_amplitude: tuple[float, float] = (-12.0, 20.0)  # flat
    log_noise: tuple[float, float] = (-12.0, 16.0)  # of the variance; horseshoe shape inside
    noise_scale: float = 0.1  # of the horseshoe, on the variance
    log_lengthscale2_low: float = -12.0  # flat up to log(2R): the lengthscale stays below sqrt(2R)
    logit: tuple[float, float] = (-12.0, 20.0)
    logit_sd: float = 2.0
    warp_width: float = math.log(2.0)  # alpha in [1/2, 1], beta in [1, 2]: concave and non-decreasing
    spike_sd: float = 0.01  # spike at "no warp", half of the mass

    def log_noise_density(self, log_noise: float) -> float:
        """Horseshoe shape log(1 + 2 (scale / variance)^2), used as a density of the log variance."""
        return math.log(math.log1p(2.0 * (self.noise_scale * math.exp(-log_noise)) ** 2))

    def log_warp_density(self, magnitude: float) -> float:
        """Spike and slab of |log alpha| or |log beta|: half a normal (mass 1/2) plus a uniform (mass 1/2).

        Differs from the paper's supplement, which puts log alpha on the positive and log beta on the negative half
        line: that warp is convex, the opposite of what its text wants (see docs/errata.md).
        """
        spike = math.exp(-0.5 * (magnitude / self.spike_sd) ** 2) / (self.spike_sd * math.sqrt(2.0 * math.pi))
        return math.log(spike + 0.5 / self.warp_width)

    def log_logit_density(self, logit: float) -> float:
        """Normal(0, logit_sd)."""
        return -0.5 * (logit / self.logit_sd) ** 2 - math.log(self.logit_sd * math.sqrt(2.0 * math.pi))


class Layout:
    """Which hyperparameters a model has, where they stand in theta, and how likely they are a priori."""

    def __init__(
        self,
        priors: Priors,
        ball_radius: float,
        y_range: tuple[float, float],
        *,
        angular_degree: int | None,  # P, or None for a kernel without directions
        warped: bool,
    ) -> None:
        """Take the supports from `priors`; that of the mean is the range of the observed values."""
        self.priors = priors
        self.ball_radius = ball_radius
        self.y_range = y_range
        self.warped = warped
        self.degree = angular_degree
        names = ["log_amplitude", "log_noise"]
        names += ["log_alpha", "log_beta"] * warped
        names += ["log_lengthscale2"]
        names += [] if angular_degree is None else ["log_c0"] + ["contrast"] * angular_degree
        names += ["mean"]
        self.names = tuple(names)
        self.lower, self.upper = self._bounds()

    def __len__(self) -> int:
        return len(self.names)

    def where(self, names: Sequence[str]) -> tuple[int, ...]:
        """Positions in theta of the entries with one of these names."""
        return tuple(i for i, name in enumerate(self.names) if name in names)

    def _bounds(self) -> tuple[Vector, Vector]:
        """Per coordinate an interval outside of which the density is certainly zero."""
        priors = self.priors
        (a0, a1), (v0, v1), (c0, c1) = priors.log_amplitude, priors.log_noise, priors.logit
        intervals = {
            "log_amplitude": (a0, a1),
            "log_noise": (v0, v1),
            "log_alpha": (-priors.warp_width, 0.0),
            "log_beta": (0.0, priors.warp_width),
            "log_lengthscale2": (priors.log_lengthscale2_low, math.log(2.0 * self.ball_radius)),
            "log_c0": (c0, c1),
            "contrast": (c0 - c1, c1 - c0),
            "mean": self.y_range,
        }
        low, high = np.array([intervals[name] for name in self.names]).T
        return low, high

    def log_prior(self, theta: Vector) -> float:
        """Log density of theta up to a constant; -inf outside the support."""
        values = theta.tolist()
        priors = self.priors
        if any(not low <= v <= high for v, low, high in zip(values, self.lower, self.upper, strict=True)):
            return -math.inf
        total = priors.log_noise_density(values[1])
        if self.warped:
            total += priors.log_warp_density(values[2]) + priors.log_warp_density(values[3])
        if self.degree is not None:
            for logit in self._logits(values):
                if not priors.logit[0] <= logit <= priors.logit[1]:
                    return -math.inf
                total += priors.log_logit_density(logit)
        return total

    def _logits(self, values: list[float]) -> list[float]:
        assert self.degree is not None
        first = len(values) - 2 - self.degree
        c0 = values[first]
        return [c0] + [c0 + contrast for contrast in values[first + 1 : -1]]

    def initial(self, y: Array) -> Vector:  # (n,) -> (p,)
        """Where the authors' code starts: log of the *standard deviation* as log A, noise a thousandth of it,
        squared lengthscale R, no warp, equal weights, mean of y. Clipped to the support.
        """
        log_sd = math.log(max(float(y.std(ddof=1)), 1e-300)) if len(y) > 1 else 0.0
        theta = np.zeros(len(self))
        theta[0], theta[1] = log_sd, log_sd - math.log(1000.0)
        theta[self.where(["log_lengthscale2"])[0]] = math.log(self.ball_radius)
        theta[-1] = float(y.mean())
        return np.clip(theta, self.lower, self.upper)

    def repaired(self, theta: Vector) -> Vector:  # (p,) -> (p,)
        """The nearest theta of the support: new data move the bounds of the mean."""
        return np.clip(theta, self.lower, self.upper)

    def unpack(self, thetas: Vector) -> Hyperparameters:  # (s, p)
        """The batch of vectors as named values in natural units."""
        column = dict(zip(self.names, thetas.T, strict=True))  # of the contrasts the last, unused
        weights = None
        if self.degree is not None:
            powers = np.exp(thetas[:, len(self) - 2 - self.degree : -1])  # bounded contrasts cannot overflow
            powers[:, 0] = 1.0
            weights = powers / powers.sum(-1, keepdims=True)
        return Hyperparameters(
            amplitude=np.exp(column["log_amplitude"]),
            noise_ratio=np.exp(column["log_noise"] - column["log_amplitude"]),
            lengthscale=np.exp(0.5 * column["log_lengthscale2"]),
            mean=column["mean"],
            warp=(np.exp(column["log_alpha"]), np.exp(column["log_beta"])) if self.warped else None,
            weights=weights,
        )

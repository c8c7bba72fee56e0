"""Gaussian processes on the ball: one per hyperparameter sample, all on the same data.

    x (n, d) data away from the centre     K (s, n, n) covariance / A, with nugget   L its lower Cholesky factor
    W (s, n, n) = L^-1                     tau (s,) nugget: stabiliser + noise / A + jitter
    e, g (s, ., n) whitened covariances L^-1 k and residuals L^-1 (y - mean)

Amplitudes are divided out: with K = A K~ the mean needs no A and the variance is A times that of unit amplitude.
"""

import copy
import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from cylbo.arrays import AnyArray
from cylbo.hyper import Hyperparameters
from cylbo.kernel import Cylindrical, Matern, Relation
from cylbo.linalg import Array, cholesky, inverse_lower

__all__ = ["GP", "JITTERS", "SMALLEST_VARIANCE", "Data", "Posterior", "add_diagonal", "correlation", "dot"]

# The authors' ladder, 1e-6 of the diagonal and tenfold at each failure, begun where float64 begins to need it
JITTERS: tuple[float, ...] = tuple(10.0**k for k in range(-12, -1))

SMALLEST_VARIANCE = 1e-12  # of the amplitude; the authors clamp at 1e-12 of whatever unit y has


@dataclass(frozen=True)
class Data:
    """Observations, those at the centre set apart where the kernel needs it."""

    x: Tensor  # (n, d)
    y: Tensor  # (n,)
    center_y: Tensor  # (k,) observations at the centre

    @classmethod
    def of(cls, x: Tensor, y: Tensor, kernel: Cylindrical | Matern) -> "Data":
        """Split observations as the kernel wants them. Only an exact 0 is the centre."""
        at_center = (x == 0).all(-1) if kernel.has_center else torch.zeros(len(x), dtype=torch.bool)
        return cls(x[~at_center], y[~at_center], y[at_center])


@dataclass(frozen=True)
class Posterior:
    """What is known of the noise-free function at m queries, under each of s hyperparameter samples."""

    mean: Tensor  # (s, m)
    variance: Tensor  # (s, m), strictly positive


class GP:
    """s Gaussian processes with their factors made, on data away from the centre.

    For the cylindrical kernel with the centre among data or queries see `center.CenteredGP`.
    """

    def __init__(
        self,
        data: Data,
        kernel: Cylindrical | Matern,
        h: Hyperparameters,
        *,
        stabilizer: float,  # added to the diagonal, relative to the amplitude
        jitters: Sequence[float] = JITTERS,
    ) -> None:
        """Factorise. Raises NotPositiveDefiniteError if no jitter helps."""
        self.data, self.kernel = data, kernel
        self.stabilizer = stabilizer
        correlations = correlation(kernel, kernel.relate(data.x, data.x).numpy(), h)
        nugget = stabilizer + h.noise_ratio
        factors = [cholesky(add_diagonal(*pair), jitters) for pair in zip(correlations, nugget, strict=True)]
        self.tau = torch.from_numpy(nugget + [jitter for _, jitter in factors])
        self.W = torch.from_numpy(np.stack([inverse_lower(L) for L, _ in factors]))
        self.h = h.map(torch.from_numpy)
        residual = data.y - self.h.mean[:, None]
        self.g = (self.W @ residual[:, :, None]).squeeze(-1)  # (s, n)

    def __len__(self) -> int:
        return len(self.h)

    def subset(self, samples: slice) -> Self:
        """The GPs of some of the samples, sharing the factors."""
        part = copy.copy(self)
        part.h = self.h.map(lambda array: array[samples])
        part.tau, part.W, part.g = self.tau[samples], self.W[samples], self.g[samples]
        return part

    def whiten(self, k: Tensor) -> Tensor:  # (s, m, n) -> (s, m, n)
        """L^-1 k for rows of covariances with the data."""
        return k @ self.W.mT

    def posterior(self, x: Tensor) -> Posterior:  # (m, d)
        """Posterior mean and variance of the latent function. Oh et al. 2018, Eqs. (2) and (3)."""
        e = self.whiten(correlation(self.kernel, self.kernel.relate(x, self.data.x), self.h))
        mean = self.h.mean[:, None] + dot(e, self.g)
        return Posterior(mean, self.scaled_variance(1.0 + self.stabilizer - dot(e, e)))

    def scaled_variance(self, unit_variance: Tensor) -> Tensor:  # (s, m) -> (s, m)
        """Variance in the units of y from one of unit amplitude, kept positive."""
        return self.h.amplitude[:, None] * unit_variance.clamp_min(SMALLEST_VARIANCE)


def dot(u: Tensor, v: Tensor) -> Tensor:  # (s, m, n), (s, m, n) or (s, n) -> (s, m)
    """Inner products over the data axis."""
    if v.dim() == u.dim():
        return (u * v).sum(-1)
    return (u @ v[:, :, None]).squeeze(-1)


def correlation(kernel: Cylindrical | Matern, relation: Relation, h: Hyperparameters) -> AnyArray:  # (s, n, m)
    """The kernel's value, the product of its factors."""
    return functools.reduce(operator.mul, (factor.correlation(relation, h) for factor in kernel.factors))


def add_diagonal(K: Array, nugget: float) -> Array:  # (n, n), () -> (n, n)
    """K + nugget I, in a new array."""
    K = K.copy()
    K.flat[:: len(K) + 1] += nugget
    return K

"""Gaussian processes on the ball: one per hyperparameter sample, all on the same data.

    x (n, d) data                          K (s, n, n) covariance / A, with nugget   L its lower Cholesky factor
    W (s, n, n) = L^-1                     tau (s,) nugget: stabiliser + noise / A + jitter
    e, g (s, ., n) whitened covariances L^-1 k and residuals L^-1 (y - mean)

Amplitudes are divided out: with covariance A K the mean needs no A and the variance is A times that of unit amplitude.
A derivative of the final result by some quantity carries that quantity's name with `_bar`, as in reverse accumulation.
"""

import copy
import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from cylbo.model.hyperparameters import Hyperparameters
from cylbo.model.kernel import Cylindrical, Kernel, Matern, Relation
from cylbo.numerics.linalg import cholesky, inverse_lower
from cylbo.numerics.threads import LARGE, PIECES, in_parallel
from cylbo.types import Array

__all__ = [
    "GP",
    "JITTERS",
    "SMALLEST_VARIANCE",
    "Data",
    "Posterior",
    "Pullback",
    "Toward",
    "correlation",
    "dot",
    "parallel_posterior",
]

# The authors' ladder is 1e-6 of the diagonal and tenfold at each failure; float64 allows to begin lower
JITTERS: tuple[float, ...] = tuple(10.0**k for k in range(-12, -1))

SMALLEST_VARIANCE = 1e-12  # of the amplitude; the authors clamp at 1e-12 of whatever unit y has

# derivatives by mean (s, m) or k (s, m, n), and by variance (s, m) -> derivatives by the queries (m, d)
Pullback = Callable[[Array, Array], Array]


@dataclass(frozen=True, eq=False)
class Data:
    """Observations, those at the centre set apart where the kernel needs it."""

    x: Array  # (n, d)
    y: Array  # (n,)
    center_y: Array  # (k,) observations at the centre

    @classmethod
    def of(cls, x: Array, y: Array, kernel: Kernel) -> "Data":
        """Split observations as the kernel wants them. Only an exact 0 is the centre."""
        at_center = (x == 0).all(-1) & kernel.has_center
        return cls(x[~at_center], y[~at_center], y[at_center])


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of the noise-free function at m queries, under each of s hyperparameter samples."""

    mean: Array  # (s, m)
    variance: Array  # (s, m), strictly positive
    pullback: Pullback  # how a function of mean and variance changes with the queries


class Toward(NamedTuple):
    """How m queries relate to the data, with unit amplitude."""

    k: Array  # (s, m, n) correlations with the data
    variance: Array  # (s, m) before any data; the same for all hyperparameters: (1, m)
    pullback: Pullback  # derivatives by k and variance -> derivatives by the queries (m, d)


class GP:
    """s Gaussian processes with their factors made, on data away from the centre.

    For the cylindrical kernel with the centre among data or queries see `center.CenteredGP`.
    """

    def __init__(
        self,
        data: Data,
        kernel: Kernel,
        h: Hyperparameters,
        *,
        stabilizer: float,  # added to the diagonal, relative to the amplitude
        jitters: Sequence[float] = JITTERS,
        noise: Array | float = 0.0,  # (n,) added to the diagonal besides h's, relative to the amplitude
    ) -> None:
        """Factorise. Raises NotPositiveDefiniteError if no jitter helps."""
        self.data, self.kernel, self.h, self.stabilizer = data, kernel, h, stabilizer
        nugget = stabilizer + h.noise_ratio
        correlations = self.toward(data.x).k
        factors = [cholesky(R, tau + noise, jitters) for R, tau in zip(correlations, nugget, strict=True)]
        self.tau: Array = nugget + [jitter for _, jitter in factors]
        self.W = np.stack([inverse_lower(L) for L, _ in factors])
        self.g: Array = (self.W @ (data.y - h.mean[:, None])[:, :, None])[..., 0]  # (s, n)

    def __len__(self) -> int:
        return len(self.h)

    def subset(self, samples: slice) -> Self:
        """The GPs of some of the samples, sharing the factors."""
        part = copy.copy(self)
        part.h = self.h[samples]
        part.tau, part.W, part.g = self.tau[samples], self.W[samples], self.g[samples]
        return part

    def whiten(self, k: Array) -> Array:  # (s, m, n) -> (s, m, n)
        """L^-1 k for rows of covariances with the data."""
        return np.asarray(k @ self.W.transpose(0, 2, 1))

    def posterior(self, x: Array) -> Posterior:  # (m, d)
        """Posterior mean and variance of the latent function. Oh et al. 2018, Eqs. (2) and (3)."""
        toward = self.toward(x)
        e = self.whiten(toward.k)
        mean = self.h.mean[:, None] + dot(e, self.g)
        variance = toward.variance + self.stabilizer - dot(e, e)

        def pullback(mean_bar: Array, variance_bar: Array) -> Array:
            unit_bar = self.unit_variance_bar(variance, variance_bar)
            e_bar = mean_bar[..., None] * self.g[:, None, :] - 2.0 * unit_bar[..., None] * e
            return toward.pullback(e_bar @ self.W, unit_bar)

        return Posterior(mean, self.scaled_variance(variance), pullback)

    def toward(self, x: Array) -> Toward:  # (m, d)
        """Correlations of the queries with the data, their own variances, and how these change with the queries."""
        kernel = self.kernel
        assert isinstance(kernel, Cylindrical | Matern), "other kernels have a process of their own"
        relation = kernel.relate(x, self.data.x)

        def pullback(k_bar: Array, variance_bar: Array) -> Array:
            if not isinstance(kernel, Matern):
                raise NotImplementedError("the cylindrical kernel is climbed through CenteredGP")
            weight = (k_bar * kernel.euclidean_slope(relation.t, self.h)).sum(0)  # (m, n)
            return np.asarray(weight.sum(-1, keepdims=True) * x - weight @ self.data.x)

        return Toward(correlation(kernel, relation, self.h), np.ones((len(self), len(x))), pullback)

    def scaled_variance(self, unit_variance: Array) -> Array:  # (s, m) -> (s, m)
        """Variance in the units of y from one of unit amplitude, kept positive."""
        return np.asarray(self.h.amplitude[:, None] * np.maximum(unit_variance, SMALLEST_VARIANCE))

    def unit_variance_bar(self, unit_variance: Array, variance_bar: Array) -> Array:  # (s, m), (s, m) -> (s, m)
        """The derivative that `scaled_variance` passes on."""
        return np.where(unit_variance > SMALLEST_VARIANCE, self.h.amplitude[:, None] * variance_bar, 0.0)


def parallel_posterior(gp: GP, x: Array) -> Posterior:  # (m, d)
    """`gp.posterior(x)`, the samples shared out among threads if there are enough data to make it worth while."""
    if len(gp.data.y) < LARGE or len(gp) < 2:
        return gp.posterior(x)
    cuts = np.linspace(0, len(gp), min(PIECES, len(gp)) + 1).astype(int)
    slices = [slice(*pair) for pair in itertools.pairwise(cuts.tolist())]
    parts = in_parallel(lambda samples: gp.subset(samples).posterior(x), slices)

    def pullback(mean_bar: Array, variance_bar: Array) -> Array:
        def one(work: tuple[slice, Posterior]) -> Array:
            return work[1].pullback(mean_bar[work[0]], variance_bar[work[0]])

        return np.asarray(sum(in_parallel(one, list(zip(slices, parts, strict=True)))))

    mean, variance = (np.concatenate(arrays) for arrays in zip(*((p.mean, p.variance) for p in parts), strict=True))
    return Posterior(mean, variance, pullback)


def dot(u: Array, v: Array) -> Array:  # (s, m, n), (s, m, n) or (s, n) -> (s, m)
    """Inner products over the data axis."""
    if v.ndim == u.ndim:
        return np.asarray(np.einsum("smn,smn->sm", u, v))
    return np.asarray((u @ v[:, :, None])[..., 0])


def correlation(kernel: Cylindrical | Matern, relation: Relation, h: Hyperparameters) -> Array:  # (s, n, m)
    """The kernel's value, the product of its factors."""
    return functools.reduce(operator.imul, (factor.correlation(relation, h) for factor in kernel.factors))

"""The kernel of the default method: a Matern on stretched coordinates, blended with effects of single coordinates.

    x (n, d) from the middle of the box, [-1, 1]^d              w (d,) stretch of the coordinates
    f_j(u) = sqrt2 cos(j pi (u + B) / 2B), B = 1.1, j = 1 ... M   s (M,) spectrum, of sum 1     v share of the effects

    K(x, x') = (1 - v) Matern52(|w (x - x')| / l) + v E(x, x'),    E(x, x') = 1/d sum_k sum_j s_j f_j(x_k) f_j(x'_k)

E is a sum of smooth functions of one coordinate each, the main effects of a designed experiment: few hundred values
say a lot about these and little about anything else in a hundred dimensions. The cosines are a Matern-5/2 process on
the interval without its faint frequencies (Solin and Sarkka 2020) and without their constant, which is the mean's
business: as features they cost a matrix product where the process itself would cost n^2 d exponentials. How many they
are, M, depends on the lengthscale, few for a trend and many for ripples, and beyond a hundred coordinates on their
number.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cylbo.model.gp import GP, JITTERS, Data, Toward
from cylbo.model.hyperparameters import Hyperparameters
from cylbo.model.kernel import matern52, matern52_slope, squared_distances
from cylbo.types import Array

__all__ = ["Blend", "BlendedGP", "grams", "most_cosines", "spectrum"]

MOST_COSINES = 32  # resolve lengthscales down to about a fifteenth of the half-width
# From 100 coordinates on they share so many features: a climb reads all of them at every step, and the few values that
# there are cannot tell the ripples of hundreds of coordinates apart
MOST_FEATURES = 3200
FEWEST_COSINES = 8  # of each of 400 coordinates and more: enough for a bend or two
FAINT = 1e-6  # a frequency of less than this share of the first one's weight is left out. A thousandth is too much:
# without the tail of the spectrum, ripples are fitted worse (docs/notebook, M12)
HALF_PERIOD = 1.1  # B; beyond 1, because the slopes of all cosines vanish at B


def most_cosines(d: int) -> int:
    """The largest M that d coordinates may have."""
    return max(FEWEST_COSINES, min(MOST_COSINES, MOST_FEATURES // d))


def cosines(x: Array, count: int) -> Array:  # (n, d) -> (count, n, d)
    """The features f_j(x_k) / sqrt(d), each cosine from the two before it (Chebyshev's recurrence).

    Beyond B, where only a search in the whole ball may look, they stay what they are at B.
    """
    first = np.cos(math.pi * (np.clip(x, -HALF_PERIOD, HALF_PERIOD) + HALF_PERIOD) / (2.0 * HALF_PERIOD))
    f = np.empty((count, *x.shape))
    f[0], twice = first, 2.0 * first
    for j in range(1, count):
        np.multiply(twice, f[j - 1], out=f[j])
        f[j] -= f[j - 2] if j > 1 else 1.0
    f *= math.sqrt(2.0 / x.shape[-1])
    return f


def cosine_slopes(x: Array, count: int) -> Array:  # (n, d) -> (count, n, d)
    """Derivatives of the features by their coordinate."""
    speed = np.arange(1.0, count + 1.0)[:, None, None] * (math.pi / (2.0 * HALF_PERIOD))
    slopes = -speed * np.sin(speed * (x + HALF_PERIOD)) * math.sqrt(2.0 / x.shape[-1])
    return np.where(np.abs(x) < HALF_PERIOD, slopes, 0.0)


def grams(x: Array) -> Array:  # (n, d) -> (most_cosines(d), n, n)
    """The effects' kernel matrix of every cosine alone: E is the sum of the first M weighted with the spectrum."""
    f = cosines(x, most_cosines(x.shape[-1]))
    return np.asarray(f @ f.transpose(0, 2, 1))


def spectrum(log_lengthscale: float, most: int) -> tuple[Array, Array]:  # -> (M,), (M,), M <= most
    """Weights of the cosines, of sum 1, and their derivative by the log of the lengthscale.

    They are those of a Matern-5/2 on the line less the faintest one that counts, so that a cosine that comes or goes
    with the lengthscale does so without a jump.
    """
    speed = np.arange(1.0, most + 1.0) * (math.pi / (2.0 * HALF_PERIOD))
    rate2 = 5.0 * math.exp(-2.0 * log_lengthscale)
    decay = (rate2 + speed**2) ** -3.0
    by_log = 6.0 * rate2 / (rate2 + speed**2) * decay
    count = int((decay > FAINT * decay[0]).sum())
    weights, slopes = ((v - FAINT * v[0])[:count] for v in (decay, by_log))
    s: Array = weights / weights.sum()
    return s, (slopes - s * slopes.sum()) / weights.sum()


@dataclass(frozen=True, eq=False)
class Blend:
    """The kernel, up to the lengthscale l, which is with the other hyperparameters."""

    stretch: Array  # (d,)
    share: float = 0.0
    spectrum: Array | None = None  # (M,), None without effects
    middle: Array | float = 0.0  # (d,) of the box, which need not be the centre of the search
    has_center: ClassVar[bool] = False  # the centre is a point like any other

    def features(self, x: Array) -> Array:  # (m, d) -> (m, M d)
        """The cosines in rows, weighted so that E is their plain product; none without effects."""
        return self._rows(cosines, x)

    def feature_slopes(self, x: Array) -> Array:  # (m, d) -> (m, M d)
        """Derivative of each feature by its coordinate."""
        return self._rows(cosine_slopes, x)

    def _rows(self, of: Callable[[Array, int], Array], x: Array) -> Array:
        if self.spectrum is None:
            return np.empty((len(x), 0))
        weighted = of(x - self.middle, len(self.spectrum)) * np.sqrt(self.spectrum)[:, None, None]
        return weighted.transpose(1, 0, 2).reshape(len(x), -1)


class BlendedGP(GP):
    """The Gaussian process of a `Blend`, for one setting of the hyperparameters."""

    kernel: Blend

    def __init__(
        self,
        data: Data,
        kernel: Blend,
        h: Hyperparameters,
        *,
        stabilizer: float,
        jitters: Sequence[float] = JITTERS,
        noise: Array | float = 0.0,  # (n,) besides h's
    ) -> None:
        """Factorise. Raises NotPositiveDefiniteError if no jitter helps."""
        self._rate = kernel.stretch / h.lengthscale[0]  # (d,)
        self._z = data.x * self._rate
        self._squares = np.einsum("nd,nd->n", self._z, self._z)
        self._features = kernel.features(data.x)
        super().__init__(data, kernel, h, stabilizer=stabilizer, jitters=jitters, noise=noise)

    def toward(self, x: Array) -> Toward:  # (m, d)
        """Correlations of the queries with the data, their own variances, and how these change with the queries."""
        kernel, share = self.kernel, self.kernel.share
        z = x * self._rate
        # `kernel.squared_distances` with what is known of the data: a climb asks for one query at a time
        squared = np.einsum("md,md->m", z, z)[:, None] + self._squares - (2.0 * z) @ self._z.T
        distance = np.sqrt(np.maximum(squared, 0.0))
        features = kernel.features(x)
        k = matern52(distance)
        variance = np.ones(len(x))
        if share:
            k = (1.0 - share) * k + share * (features @ self._features.T)
            variance = (1.0 - share) + share * np.einsum("mf,mf->m", features, features)

        def pullback(k_bar: Array, variance_bar: Array) -> Array:  # (1, m, n), (1, m) -> (m, d)
            weight = (1.0 - share) * k_bar[0] * matern52_slope(distance)
            x_bar: Array = (weight.sum(-1, keepdims=True) * z - weight @ self._z) * self._rate
            if share:
                feature_bar = share * (k_bar[0] @ self._features + 2.0 * variance_bar[0][:, None] * features)
                x_bar += (feature_bar * kernel.feature_slopes(x)).reshape(len(x), -1, x.shape[-1]).sum(1)
            return x_bar

        return Toward(k[None], variance[None], pullback)

    def joint(self, x: Array) -> Array:  # (m, d) -> (m, m)
        """Posterior covariances of the queries, with unit amplitude."""
        z, features, share = x * self._rate, self.kernel.features(x), self.kernel.share
        prior = (1.0 - share) * matern52(np.sqrt(squared_distances(z, z))) + share * (features @ features.T)
        e = self.whiten(self.toward(x).k)[0]
        return np.asarray(prior - e @ e.T)

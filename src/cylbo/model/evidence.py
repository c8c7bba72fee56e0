"""The most probable hyperparameters of a blended process (`model/blended.py`) on compressed values, by gradient.

    x (n, d) data          y (n,) values in the user's units      t (n,) = compressed values, see `model/scaling.py`
    R (n, n) correlations + nugget                                z (d,) how much each coordinate is stretched
    theta = (log l, log eta, log lambda [, logit v, log b] [, log A] [, z]) the brackets as the `Form` of the model asks
    l lengthscale in half-widths of the box    eta noise / amplitude    lambda strength of the compression
    v share and b lengthscale of the effects of single coordinates
    D (n,) variances of noise that were told, in units of t^2

The mean m and the amplitude A that make t most likely are known in closed form, so they are no search directions:

    m = 1' R^-1 t / 1' R^-1 1        A = (t - m)' R^-1 (t - m) / n
    log p(y | theta) = -n/2 log A - 1/2 log |R| + sum_i log dt_i/dy_i + constants

With noise that was told R contains D / A, there is no closed form of A, and it is one more of theta.

The last sum makes likelihoods of different compressions comparable: it is the density of what was observed, y, that
is maximised, so how strongly to compress is learned like a lengthscale (a warped Gaussian process,
Snelson et al. 2004).
"""

import math
import time
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.optimize import minimize
from scipy.special import expit

from cylbo.errors import OutOfTimeError
from cylbo.model.beliefs import Beliefs, Form
from cylbo.model.blended import Blend, grams, most_cosines, spectrum
from cylbo.model.kernel import SQRT5, squared_distances
from cylbo.model.scaling import compressed, gaps, in_gaps
from cylbo.types import Array

__all__ = ["Evidence", "Profile"]

JUDGED = 0.5  # the better half of the values is what a model is judged by ...
FEWEST_JUDGED = 10  # ... but so many, if there are as many
WORST = 1e25  # what a theta costs whose matrix cannot be factorised


class _Correlations(NamedTuple):
    """The parts of R, all symmetric, and what its derivatives are made from."""

    matern: Array  # (n, n)
    slope: Array  # (n, n) derivative of `matern` by half the squared distance in lengthscales
    z: Array  # (n, d) points in lengthscales
    effects: Array | None  # (n, n)
    share: float


class _Factorised(NamedTuple):
    L: Array  # (n, n) lower Cholesky factor of R
    mean: float  # m
    alpha: Array  # (n,) R^-1 (t - m)
    amplitude: float  # A
    misfit: float  # (t - m)' R^-1 (t - m) / A, which is n for the A that makes t most likely


class Evidence:
    """theta -> minus the log of likelihood times prior, with its gradient, for a model of the given form."""

    def __init__(
        self,
        x: Array,
        y: Array,
        beliefs: Beliefs,
        form: Form,
        *,
        middle: Array | float = 0.0,  # (d,) of the box
        noise: Array | None = None,  # (n,) standard deviations that were told in units of y, 0 where none was
        among: NDArray[np.intp] | slice = slice(None),
        judged: float = JUDGED,  # share of the values, the lowest, that a model is judged by
        until: float = math.inf,  # when a fit is to end, on the clock of `time.perf_counter`
    ) -> None:
        """Only the data `among` these are looked at; values are measured in the unit of all."""
        self.x, self.gaps, self.beliefs, self.form, self.middle = x[among], gaps(y)[among], beliefs, form, middle
        self.noise = None if noise is None else in_gaps(noise, y)[among]
        self.judged, self.until = judged, until
        d = x.shape[1]
        priors = [beliefs.log_lengthscale, beliefs.log_nugget, beliefs.log_compression]
        ranges = [beliefs.log_lengthscale_range, beliefs.log_nugget_range, beliefs.log_compression_range]
        if form.effects:
            priors += [beliefs.logit_share, beliefs.log_effect_lengthscale]
            ranges += [beliefs.logit_share_range, beliefs.log_effect_lengthscale_range]
        if noise is not None:
            priors.append(beliefs.log_amplitude)
            ranges.append(beliefs.log_amplitude_range)
        self._n_normal = len(priors)
        if form.stretched:
            priors += [(0.0, 1.0)] * d
            ranges += [beliefs.stretch_range] * d
        shift = np.zeros(len(priors))
        shift[0] = 0.5 * np.log(d)  # lengthscales are measured in sqrt(d)
        self.prior_mean, self.prior_sd = np.array(priors)[:, 0] + shift, np.array(priors)[:, 1]
        self.lower, self.upper = np.array(ranges).T + shift
        self.evaluations = 0

    @property
    def out_of_time(self) -> bool:
        """Whether the clock has run out."""
        return time.perf_counter() > self.until

    @cached_property
    def _grams(self) -> Array:  # (most_cosines(d), n, n)
        return grams(self.x - self.middle)

    def _weighted_grams(self, weights: Array) -> Array:  # (M,) -> (n, n)
        return np.asarray(np.tensordot(weights, self._grams[: len(weights)], 1))

    def _spectrum(self, theta: Array) -> tuple[Array, Array]:  # (p,) -> (M,), (M,)
        return spectrum(theta[4], most_cosines(self.x.shape[1]))

    @cached_property
    def _pairs(self) -> Array:  # (n, n)
        """Picks pairs, and half of the diagonal, from a matrix in LAPACK's order."""
        n = len(self.x)
        return np.asfortranarray(np.tri(n) - 0.5 * np.eye(n))

    def descended(self, start: Array, max_iterations: int) -> tuple[float, Array]:  # (p,) -> (), (p,)
        """The lowest value that L-BFGS-B finds from a start within the ranges, and where."""
        lowest = math.inf, start

        def timed(theta: Array) -> tuple[float, Array]:
            nonlocal lowest
            value, gradient = self(theta)
            if value < lowest[0]:
                lowest = value, theta.copy()
            if self.out_of_time:
                raise OutOfTimeError
            return value, gradient

        try:
            result = minimize(
                self if math.isinf(self.until) else timed,
                start,  # which SciPy clips to the bounds
                jac=True,
                method="L-BFGS-B",
                bounds=np.stack([self.lower, self.upper], -1),
                options={"maxiter": max_iterations, "maxfun": 2 * max_iterations},
            )
        except OutOfTimeError:
            return lowest
        return float(result.fun), np.asarray(result.x)

    def __call__(self, theta: Array) -> tuple[float, Array]:  # (p,) -> (), (p,)
        """Value and gradient; a constant where R cannot be factorised."""
        self.evaluations += 1
        n = len(self.gaps)
        t, t_slope, log_jacobian, jacobian_slope = compressed(self.gaps, theta[2])
        kernel = self.kernel(theta)
        effects = self._weighted_grams(kernel.spectrum) if kernel.spectrum is not None else None
        parts = self._correlations(kernel, theta, effects)
        at = self._factorised(parts, theta, t)
        if at is None:
            return WORST, np.zeros_like(theta)
        alpha, amplitude = at.alpha, at.amplitude
        value, gradient = self._minus_log_prior(theta)
        value += 0.5 * n * np.log(amplitude) + np.log(at.L.diagonal()).sum() - log_jacobian
        value += 0.5 * (at.misfit - n)  # nothing, unless noise was told

        # The derivative of `value` by a pair's R_ij = R_ji, by R_ii on the diagonal; nothing above it
        R_bar = lapack.dpotri(at.L, lower=1, overwrite_c=1)[0]
        R_bar = blas.dsyr(-1.0 / amplitude, alpha, a=R_bar, lower=1, overwrite_a=1)
        R_bar *= self._pairs
        gradient[1] += np.exp(theta[1]) * float(np.trace(R_bar))
        gradient[2] += float(alpha @ t_slope) / amplitude - jacobian_slope
        if self.noise is not None:
            told = self._told(theta) * R_bar.diagonal()
            gradient[self._n_normal - 1] += 0.5 * (n - at.misfit) - told.sum()
            stretched = np.exp(theta[2]) * self.gaps
            gradient[2] -= 2.0 * float(told @ (stretched / (1.0 + stretched)))
        if parts.effects is not None:
            share, effect_slope = parts.share, self._weighted_grams(self._spectrum(theta)[1])
            gradient[3] += share * (1.0 - share) * _inner(R_bar, parts.effects.T - parts.matern.T)
            gradient[4] += share * _inner(R_bar, effect_slope.T)
        # By log l_k: minus the sum over pairs of weight_ij (z_ik - z_jk)^2, from one product with the points
        R_bar *= parts.slope.T
        z = np.column_stack([parts.z, np.ones(n)])
        weighted = blas.dsymm(1.0 - parts.share, R_bar, z, lower=1)
        by_coordinate = np.einsum("nd,nd->d", weighted[:, :-1] - weighted[:, -1:] * parts.z, parts.z)
        gradient[0] += by_coordinate.sum()
        if self.form.stretched:
            gradient[self._n_normal :] += self.beliefs.stretch_scale * by_coordinate
        return float(value), gradient

    def kernel(self, theta: Array) -> Blend:  # (p,)
        """The kernel at theta."""
        z = theta[self._n_normal :] if self.form.stretched else np.zeros(self.x.shape[1])
        stretch = np.exp(-self.beliefs.stretch_scale * z)
        if not self.form.effects:
            return Blend(stretch)
        return Blend(stretch, float(expit(theta[3])), self._spectrum(theta)[0], self.middle)

    def profile(self, theta: Array) -> "Profile":  # (p,)
        """The process at theta with the mean and amplitude that belong to it."""
        t = compressed(self.gaps, theta[2])[0]
        kernel = self.kernel(theta)
        # The product of all features is what their weighted grams are, which are for those who need many thetas
        features = kernel.features(self.x)
        effects = features @ features.T if kernel.spectrum is not None else None
        at = self._factorised(self._correlations(kernel, theta, effects), theta, t) if self.gaps.any() else None
        if at is None:
            return Profile(t, 0.0, 1.0, t, np.zeros_like(t), -np.inf, self._told(theta), None)
        nugget, strength = np.exp(theta[1:3])
        # Leaving one out needs no other factors than those of all (Sundararajan and Keerthi 2001)
        precision = lapack.dpotri(at.L, lower=1, overwrite_c=1)[0].diagonal()
        error, sd = at.alpha / precision, np.sqrt(at.amplitude / precision)
        log_density = 0.5 * np.log(precision / at.amplitude) - 0.5 * at.alpha**2 / (precision * at.amplitude)
        log_density = log_density - np.log1p(strength * self.gaps)  # of the values themselves
        better = np.argsort(self.gaps, kind="stable")[: max(FEWEST_JUDGED, int(self.judged * len(t)))]
        told = self._told(theta)
        noise = nugget if told is None else nugget + told
        predicted = t - noise * at.alpha
        uncertainty = np.sqrt(at.amplitude * np.maximum(noise - noise**2 * precision, 0.0))
        score = float(log_density[better].mean())
        return Profile(t, at.mean, at.amplitude, predicted, uncertainty, score, told, (error, sd))

    def _told(self, theta: Array) -> Array | None:  # (p,) -> (n,)
        """D / A; None where no noise was told."""
        if self.noise is None:
            return None
        sd = self.noise / (1.0 + np.exp(theta[2]) * self.gaps)
        return np.asarray(sd * sd * np.exp(-theta[self._n_normal - 1]))

    def _correlations(self, kernel: Blend, theta: Array, effects: Array | None) -> _Correlations:
        z = self.x * (kernel.stretch * np.exp(-theta[0]))
        s = squared_distances(z, z)
        np.fill_diagonal(s, 0.0)
        s = SQRT5 * np.sqrt(s, out=s)
        decay = np.exp(-s)
        # `kernel.matern52` and its slope, here from one exponential: this is where a fit spends its time
        slope = -5.0 / 3.0 * (1.0 + s) * decay
        matern = (s * s / 3.0 + s + 1.0) * decay
        return _Correlations(matern, slope, z, effects, kernel.share)

    def _factorised(self, parts: _Correlations, theta: Array, t: Array) -> _Factorised | None:
        """R's factor, and what follows from it in closed form; None if R is not positive definite."""
        n = len(t)
        if parts.effects is None:
            R = parts.matern.copy()
        else:
            R = (1.0 - parts.share) * parts.matern + parts.share * parts.effects
        told = self._told(theta)
        R.flat[:: n + 1] += np.exp(theta[1]) if told is None else np.exp(theta[1]) + told
        L, failed = lapack.dpotrf(R.T, lower=1, clean=0, overwrite_a=1)
        if failed or not np.isfinite(L.diagonal()).all():
            return None
        solved, _ = lapack.dpotrs(L, np.stack([t, np.ones(n)], -1), lower=1)
        mean = float(solved[:, 0].sum()) / float(solved[:, 1].sum())
        alpha = solved[:, 0] - mean * solved[:, 1]
        square = float((t - mean) @ alpha)
        amplitude = max(square / n, 1e-300) if told is None else float(np.exp(theta[self._n_normal - 1]))
        return _Factorised(L, mean, alpha, amplitude, n if told is None else square / amplitude)

    def _minus_log_prior(self, theta: Array) -> tuple[float, Array]:
        """Up to a constant, with its gradient."""
        k, freedom = self._n_normal, self.beliefs.stretch_freedom
        deviation = (theta - self.prior_mean) / self.prior_sd
        gradient = deviation / self.prior_sd
        z = theta[k:]
        gradient[k:] = (freedom + 1.0) * z / (freedom + z * z)
        value = 0.5 * deviation[:k] @ deviation[:k] + 0.5 * (freedom + 1.0) * np.log1p(z * z / freedom).sum()
        return float(value), gradient


def _inner(a: Array, b: Array) -> float:
    return float(np.vdot(a.T, b.T))  # transposed they lie in memory as vdot reads them


class Profile(NamedTuple):
    """What theta leaves open, in closed form."""

    t: Array  # (n,) compressed values
    mean: float
    amplitude: float
    predicted: Array  # (n,) posterior means at the data
    uncertainty: Array  # (n,) and standard deviations
    score: float  # mean log density of the better half of the values, each predicted from all others
    told: Array | None  # (n,) D / A, None where no noise was told
    left_out: tuple[Array, Array] | None  # (n,), (n,) of each value predicted from all others: error and its sd

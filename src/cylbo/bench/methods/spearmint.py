"""Spearmint and Spearmint+, the paper's strongest rivals, written anew from their papers.

J. Snoek, H. Larochelle, R. P. Adams, Practical Bayesian optimization of machine learning algorithms, NIPS 2012, with
its supplement: a Gaussian process with ARD Matern-5/2 kernel on the unit cube, expected improvement averaged over
samples of the hyperparameters, candidates from a Sobol sequence, the best refined by a bounded quasi-Newton method.
J. Snoek, K. Swersky, R. Zemel, R. P. Adams, Input warping for Bayesian optimization of non-stationary functions, ICML
2014 (Spearmint+): the same, each coordinate bent by a monotone map with two parameters of its own.

    x (n, d) data in the unit cube      y (n,) their values, standardised     theta (p,) hyperparameters: mean,
    z (s, n, d) x bent, in lengthscales R (n, n) correlation of the data      log amplitude, log noise variance, `shape`
    W (s, n, n) inverse of the factor of R + noise / amplitude                shape (1 or 3, d) lengthscale and, for
    e (s, m, n) whitened covariances    g (s, n) whitened residuals           Spearmint+, log alpha and log beta

Where this departs from the papers:

- The values are standardised in every round (`outputs.standardized`): the amplitude's prior has a fixed unit.
- Hyperparameters are sampled by coordinate-wise slice sampling (Neal 2003). Murray and Adams 2010, which the papers
  cite, moves latent values together with hyperparameters; with Gaussian noise the latent values are integrated exactly
  and slice sampling of the hyperparameters is what is left. One sweep makes one sample, without thinning.
- The warp is Kumaraswamy's 1 - (1 - u^alpha)^beta, not the Beta distribution function. The two families hardly
  differ, and this one has a closed form and a closed slope, as in the radial warp of Oh et al. 2018, Eq. (8).
"""

import math
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.stats import qmc

from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective
from cylbo.errors import NotPositiveDefiniteError
from cylbo.model.gp import JITTERS, SMALLEST_VARIANCE, Posterior, dot
from cylbo.model.hyperparameters import Vector
from cylbo.model.kernel import kumaraswamy, kumaraswamy_slope, matern52, matern52_slope
from cylbo.model.scaling import standardized
from cylbo.numerics.linalg import cholesky, inverse_lower, solve_lower
from cylbo.numerics.slice_sampler import Chain, sample
from cylbo.numerics.threads import blas_threads
from cylbo.search.improvement import expected_improvement
from cylbo.types import Array

__all__ = [
    "METHODS",
    "Ensemble",
    "LogPosterior",
    "initial_theta",
    "log_prior",
    "sample_hyperparameters",
    "search",
    "sobol_grid",
    "suggest",
    "support",
]

# Priors of Snoek et al. 2012, supplement: uniform mean, lengthscales uniform on (0, 2], log-normal amplitude with
# parameters 0 and 1, horseshoe for the noise. Bounds that are not of the prior keep the arithmetic finite.
LENGTHSCALE = (1e-3, 2.0)
LOG_AMPLITUDE = (-10.0, 10.0)  # ten standard deviations of the prior
LOG_NOISE = (-20.0, 3.0)  # of values with unit variance
NOISE_SCALE = 0.1  # of the horseshoe, on the variance; the papers give none, this is the one of Oh et al.'s code
LOG_WARP = (-5.0, 5.0)
LOG_WARP_SD = math.sqrt(0.75)  # of log alpha and log beta about the identity, 0 (Sec. 3 of the 2014 paper); our choice

N_SAMPLES = 10  # of the hyperparameters per suggestion, one sweep each
FIRST_SWEEPS = 100  # before the first of them: at two observations they cost next to nothing
FIRST_LENGTHSCALE, FIRST_NOISE = 1.0, 1e-3  # where the chain starts: any point of the support would do
FIRST_WIDTH = 1.0  # of the slices; later rounds take what was seen

N_GRID = 20_000  # Oh et al. 2018, Sec. 4
N_SPRAY = 10  # about the incumbent
SPRAY_SD = 1e-3  # in the unit cube; the distance of Oh et al.'s code
N_REFINED = 20  # Oh et al. 2018, Sec. 4
MAX_STEPS = 50  # of L-BFGS-B; later ones moved the improvement in the fourth digit, if at all

SAME_POINT = 1e-9  # two points closer than this in every coordinate count as one
RIM = 1e-9  # the slope of a warp may be infinite at 0 and 1; it is taken this far inside
CHUNK_ELEMENTS = 2**17  # entries of a (samples, queries, data) block: 1 MB, about a core's cache

MEAN, AMPLITUDE, NOISE, SHAPE = 0, 1, 2, 3  # where theta's parts begin


def search(objective: Objective, seed: int, *, warped: bool) -> None:
    """The centre, one Sobol point, then the model. Oh et al. 2018, Sec. 4."""
    rng = np.random.default_rng(seed)
    grid = sobol_grid(objective.dim, rng)
    objective(objective.center)
    objective(2.0 * grid[0] - 1.0)
    chain = None
    while objective.left:
        x, y = 0.5 * (np.array(objective.points) + 1.0), standardized(np.array(objective.values))
        with blas_threads(1):
            proposal, chain = suggest(x, y, chain, grid, rng, warped=warped)
        objective(2.0 * proposal - 1.0)


def sobol_grid(dim: int, rng: Generator) -> Array:  # -> (N_GRID, d)
    """The candidates of a whole run: one scrambled Sobol sequence, never renewed.

    That it stands still is part of the method (Oh et al. 2018, Sec. 4, name it as a weakness).
    """
    power = math.ceil(math.log2(N_GRID))
    return np.asarray(qmc.Sobol(dim, scramble=True, rng=rng).random_base2(power)[:N_GRID])


def suggest(
    x: Array,  # (n, d) in the unit cube
    y: Array,  # (n,) standardised
    chain: Chain | None,  # of the round before
    grid: Array,  # (m, d)
    rng: Generator,
    *,
    warped: bool,
) -> tuple[Array, Chain]:  # (d,)
    """The new point of largest averaged expected improvement that was found, and the sampler's state.

    Snoek et al. 2012, supplement, Sec. 1.1. Differs there: the best `N_REFINED` candidates are refined, not all, as in
    Oh et al. 2018, Sec. 4.
    """
    thetas, chain = sample_hyperparameters(x, y, chain, rng, warped=warped)
    ensemble = Ensemble(x, y, thetas)
    best = float(y.min())
    incumbent = x[y.argmin()]
    spray = np.clip(incumbent + SPRAY_SD * rng.standard_normal((N_SPRAY, x.shape[1])), 0.0, 1.0)
    candidates = np.concatenate([grid, spray])
    values = ensemble.improvement(candidates, best)
    # No more than n of the grid and N_SPRAY can be old: enough are looked at to be left with some that are new
    ranked = candidates[np.argsort(-values, stable=True)[: N_REFINED + len(x) + N_SPRAY]]
    starts = ranked[_is_new(ranked, x)][:N_REFINED]
    ends = _refined(ensemble, starts, best, scale=float(values.max()))
    reached = np.concatenate([ends[_is_new(ends, x)], starts])
    found: Array = reached[ensemble.improvement(reached, best).argmax()]
    return found, chain


def sample_hyperparameters(
    x: Array,  # (n, d)
    y: Array,  # (n,)
    chain: Chain | None,
    rng: Generator,
    *,
    warped: bool,
    n_samples: int = N_SAMPLES,
) -> tuple[Vector, Chain]:  # (s, p)
    """Samples of the posterior, from the last round's state on; the first time after some sweeps for nothing."""
    lower, upper = support(y, x.shape[1], warped=warped)
    log_posterior = LogPosterior(x, y)
    run = partial(sample, log_posterior, rng=rng, lower=lower, upper=upper, tune_widths=True)
    first = np.clip(initial_theta(x.shape[1], warped=warped), lower, upper)
    if chain is None:
        _, chain = run(Chain(first, np.full(len(first), FIRST_WIDTH)), FIRST_SWEEPS)
    last = np.clip(chain.theta, lower, upper)  # new data move the bounds of the mean
    # A noise that was too small for the new data (a point close to an old one) is no place to start from
    start = last if math.isfinite(log_posterior(last, -math.inf)) else first
    return run(Chain(start, chain.widths), n_samples)


def initial_theta(dim: int, *, warped: bool) -> Vector:  # -> (p,)
    """Where the first chain starts: zero mean, unit amplitude, little noise, no warp."""
    theta = np.zeros(SHAPE + (3 if warped else 1) * dim)
    theta[NOISE] = math.log(FIRST_NOISE)
    theta[SHAPE : SHAPE + dim] = FIRST_LENGTHSCALE
    return theta


def support(y: Array, dim: int, *, warped: bool) -> tuple[Vector, Vector]:  # (n,) -> (p,), (p,)
    """Bounds of theta; those of the mean are the observed range."""
    intervals = [(float(y.min()), float(y.max())), LOG_AMPLITUDE, LOG_NOISE]
    intervals += [LENGTHSCALE] * dim + [LOG_WARP] * (2 * dim if warped else 0)
    lower, upper = np.array(intervals).T
    return lower, upper


def log_prior(theta: Vector, dim: int) -> float:
    """Log density of theta inside its support, up to a constant.

    The amplitude and the exponents of the warp are log-normal, so their logarithms are normal. The noise variance v
    has the horseshoe's density, about log(1 + 2 (scale / v)^2) (Carvalho, Polson and Scott 2009, Theorem 1); its
    logarithm, which is sampled, has v times that.
    """
    log_noise = float(theta[NOISE])
    log_warp = theta[SHAPE + dim :]
    horseshoe = math.log(math.log1p(2.0 * (NOISE_SCALE * math.exp(-log_noise)) ** 2))
    return (
        horseshoe + log_noise - 0.5 * float(theta[AMPLITUDE]) ** 2 - 0.5 * float(log_warp @ log_warp) / LOG_WARP_SD**2
    )


class LogPosterior:
    """Log density of theta given the data, up to the constants of the prior; made for coordinate-wise sampling.

    Of the squared distances the part that does not depend on the coordinate being moved is kept, so that a new
    lengthscale or warp costs O(n^2) and one factorisation; amplitude, noise and mean leave the correlation as it is.
    """

    def __init__(self, x: Array, y: Array) -> None:
        """Take data x (n, d) and y (n,)."""
        self.x, self.y = x, y
        self._shape = np.full((0, x.shape[1]), np.nan)  # of the last call
        self._moving = 0  # the coordinate that `_others` leaves out
        self._others = np.empty((0, 0))  # (n, n) squared distances over all other coordinates
        self._R = np.empty((0, 0))

    def __call__(self, theta: Vector, floor: float = -math.inf) -> float:
        """Log density; -inf where the covariance cannot be factorised. The floor brings no shortcut here."""
        n = len(self.y)
        log_amplitude = float(theta[AMPLITUDE])
        R = self._correlation(theta[SHAPE:].reshape(-1, self.x.shape[1]))
        try:
            L, _ = cholesky(R, math.exp(float(theta[NOISE]) - log_amplitude), jitters=())
        except NotPositiveDefiniteError:
            return -math.inf
        residual = solve_lower(L, (self.y - theta[MEAN])[:, None])[:, 0]
        return (
            log_prior(theta, self.x.shape[1])
            - 0.5 * float(residual @ residual) * math.exp(-log_amplitude)
            - 0.5 * n * (log_amplitude + math.log(2.0 * math.pi))
            - float(np.log(L.diagonal()).sum())
        )

    def _correlation(self, shape: Array) -> Array:  # (1 or 3, d) -> (n, n)
        if shape.shape != self._shape.shape:
            self._begin(shape)
        changed = np.flatnonzero((shape != self._shape).any(0))
        if not len(changed) and len(self._R):
            return self._R
        for i in changed[changed != self._moving]:
            self._others += self._part(self._moving, shape)
            self._others -= self._part(i, self._shape)
            self._moving = int(i)
        squared = self._part(self._moving, shape)
        squared += self._others
        np.maximum(squared, 0.0, out=squared)  # differences of sums may round to just below
        self._shape = shape.copy()
        self._R = matern52(np.sqrt(squared, out=squared))
        return self._R

    def _begin(self, shape: Array) -> None:
        self._shape, self._moving = shape.copy(), 0
        z = _scaled(self.x, shape[None])[0, :, 1:]
        self._others = cdist(z, z, "sqeuclidean") if z.size else np.zeros((len(z), len(z)))
        self._R = np.empty((0, 0))

    def _part(self, i: int, shape: Array) -> Array:  # -> (n, n)
        """What coordinate i brings to the squared distances."""
        z = _scaled(self.x[:, i : i + 1], shape[None, :, i : i + 1])[0, :, 0]
        gaps = z[:, None] - z
        return np.square(gaps, out=gaps)


class Ensemble:
    """One Gaussian process per sample of theta, all on the same data, their factors made."""

    def __init__(self, x: Array, y: Array, thetas: Vector) -> None:
        """Factorise for x (n, d), y (n,) and thetas (s, p); raises NotPositiveDefiniteError if no jitter helps."""
        self.shapes = thetas[:, SHAPE:].reshape(len(thetas), -1, x.shape[1])  # (s, 1 or 3, d)
        self.mean, self.amplitude = thetas[:, MEAN], np.exp(thetas[:, AMPLITUDE])
        self.z = _scaled(x, self.shapes)  # (s, n, d)
        ratios = np.exp(thetas[:, NOISE] - thetas[:, AMPLITUDE])
        correlations = (matern52(cdist(z, z)) for z in self.z)
        factors = (cholesky(R, ratio, JITTERS)[0] for R, ratio in zip(correlations, ratios, strict=True))
        self.W = np.stack([inverse_lower(L) for L in factors])  # (s, n, n)
        self.g: Array = (self.W @ (y - self.mean[:, None])[:, :, None])[..., 0]  # (s, n)

    def posterior(self, x: Array) -> Posterior:  # (m, d)
        """Mean and variance (s, m) of the noise-free function. Snoek et al. 2012, Sec. 2, Eqs. for mu and sigma^2."""
        z = _scaled(x, self.shapes)
        squared = (z**2).sum(-1)[..., None] + (self.z**2).sum(-1)[:, None] - 2.0 * (z @ self.z.transpose(0, 2, 1))
        distance = np.sqrt(np.maximum(squared, 0.0))
        e = matern52(distance) @ self.W.transpose(0, 2, 1)
        unit_variance = 1.0 - dot(e, e)

        def pullback(mean_bar: Array, variance_bar: Array) -> Array:
            unit_bar = np.where(unit_variance > SMALLEST_VARIANCE, self.amplitude[:, None] * variance_bar, 0.0)
            e_bar = mean_bar[..., None] * self.g[:, None] - 2.0 * unit_bar[..., None] * e
            weight = (e_bar @ self.W) * matern52_slope(distance)  # (s, m, n)
            z_bar = weight.sum(-1, keepdims=True) * z - weight @ self.z
            return np.asarray((z_bar * _scaled_slope(x, self.shapes)).sum(0))

        variance = self.amplitude[:, None] * np.maximum(unit_variance, SMALLEST_VARIANCE)
        return Posterior(self.mean[:, None] + dot(e, self.g), variance, pullback)

    def improvement(self, x: Array, best: float) -> Array:  # (m, d) -> (m,)
        """Expected improvement on `best` averaged over the samples. Snoek et al. 2012, Secs. 2.1 and 3.2."""
        chunk = max(16, CHUNK_ELEMENTS // self.g.size)
        blocks = (self.posterior(x[i : i + chunk]) for i in range(0, len(x), chunk))
        return np.concatenate([expected_improvement(block, best).value / len(self.g) for block in blocks])

    def improvement_slope(self, x: Array, best: float) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, d)
        """Averaged expected improvement and its gradient."""
        posterior = self.posterior(x)
        acquired = expected_improvement(posterior, best)
        gradient = posterior.pullback(acquired.mean_bar, acquired.variance_bar)
        return acquired.value / len(self.g), gradient / len(self.g)


def _scaled(x: Array, shapes: Array) -> Array:  # (m, d), (s, 1 or 3, d) -> (s, m, d)
    """Coordinates bent by the warp, if there is one, and divided by the lengthscales."""
    lengthscale = shapes[:, :1]
    if shapes.shape[1] == 1:
        return np.asarray(x / lengthscale)
    return np.asarray(kumaraswamy(x, 1.0, np.exp(shapes[:, 1]), np.exp(shapes[:, 2])) / lengthscale)


def _scaled_slope(x: Array, shapes: Array) -> Array:  # (m, d), (s, 1 or 3, d) -> (s, 1 or m, d)
    """Derivative of each scaled coordinate by its own coordinate of x."""
    lengthscale = shapes[:, :1]
    if shapes.shape[1] == 1:
        return np.asarray(1.0 / lengthscale)
    inside = np.clip(x, RIM, 1.0 - RIM)
    return np.asarray(kumaraswamy_slope(inside, 1.0, np.exp(shapes[:, 1]), np.exp(shapes[:, 2])) / lengthscale)


def _refined(ensemble: Ensemble, starts: Array, best: float, *, scale: float) -> Array:  # (k, d) -> (k, d)
    """Where L-BFGS-B leads from each start inside the cube.

    The improvement is measured in `scale`, its largest value among the candidates: the stopping rules of L-BFGS-B are
    absolute, and improvements late in a run may be of any size. Where even the largest is 0 there is nothing to climb.
    """
    if scale <= 0.0:
        return starts

    def loss(point: Array) -> tuple[float, Array]:
        value, gradient = ensemble.improvement_slope(point[None], best)
        return -float(value[0]) / scale, -gradient[0] / scale

    bounds = [(0.0, 1.0)] * starts.shape[1]
    climb = partial(minimize, loss, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": MAX_STEPS})
    return np.asarray(np.clip([climb(start).x for start in starts], 0.0, 1.0))


def _is_new(points: Array, x: Array) -> NDArray[np.bool_]:  # (m, d), (n, d) -> (m,)
    """Whether each point differs from all evaluated ones."""
    return np.asarray(cdist(points, x, "chebyshev").min(1) > SAME_POINT)


METHODS = (
    Method("spearmint", "Spearmint", "Snoek et al. 2012", partial(search, warped=False)),
    Method("spearmint+", "Spearmint+", "Snoek et al. 2014", partial(search, warped=True)),
)

"""The method once more, naively: points are pairs (radius, direction), so the centre may have any direction,
and every covariance is computed entry by entry with Python's own arithmetic. Written from the formulas of the
paper and of the authors' code, without any of cylbo's, and used as the truth that cylbo's block forms and
caches are compared with.

    point = (r, a): radius and unit direction, a tuple of d floats; the centre seen in direction a is (0.0, a)
"""

import math
import operator
from dataclasses import dataclass

import numpy as np
import scipy.stats

from cylbo.model.hyperparameters import Hyperparameters


@dataclass(frozen=True)
class Model:
    """One setting of the hyperparameters, in natural units."""

    ball_radius: float
    amplitude: float
    noise: float  # a variance
    lengthscale: float
    mean: float
    weights: tuple = ()  # c_0 ... c_P; none for the isotropic Matern
    warp: tuple | None = None  # alpha, beta
    stabilizer: float = 1e-6  # of the amplitude

    def warped(self, r):
        if self.warp is None:
            return r
        alpha, beta = self.warp
        u = min(max(r / self.ball_radius, 0.0), 1.0)
        return self.ball_radius * (1.0 - (1.0 - u**alpha) ** beta)

    def matern(self, distance):
        s = math.sqrt(5.0) * distance / self.lengthscale
        return (1.0 + s + s * s / 3.0) * math.exp(-s)

    def covariance(self, first, second):
        (r1, a1), (r2, a2) = first, second
        cosine = math.fsum(map(operator.mul, a1, a2))
        angular = math.fsum(c * cosine**p for p, c in enumerate(self.weights))
        return self.amplitude * self.matern(abs(self.warped(r1) - self.warped(r2))) * angular

    def cross(self, first, second):
        return np.array([[self.covariance(p, q) for q in second] for p in first]).reshape(len(first), len(second))

    def gram(self, points):
        """Covariance of observations: every one of them has its own noise and stabiliser."""
        return self.cross(points, points) + (self.noise + self.stabilizer * self.amplitude) * np.eye(len(points))

    def posterior(self, points, y, query):
        """Mean and variance of the noise-free function at the query."""
        prior = self.covariance(query, query) + self.stabilizer * self.amplitude
        if not points:
            return self.mean, prior
        k = self.cross([query], points)[0]
        solved = np.linalg.solve(self.gram(points), np.stack([np.asarray(y) - self.mean, k], -1))
        return self.mean + k @ solved[:, 0], prior - k @ solved[:, 1]

    def log_likelihood(self, points, y):
        return scipy.stats.multivariate_normal.logpdf(y, np.full(len(y), self.mean), self.gram(points))


@dataclass(frozen=True)
class Matern(Model):
    """The isotropic Matern-5/2; a point is the pair (None, x)."""

    def covariance(self, first, second):
        return self.amplitude * self.matern(math.dist(first[1], second[1]))


@dataclass(frozen=True)
class Blended(Model):
    """A Matern-5/2 on stretched coordinates, and a function of each coordinate alone; a point is the pair (None, x)."""

    stretch: tuple = ()
    share: float = 0.0
    effect_lengthscale: float = 1.0
    middle: tuple | None = None  # of the box that the effects live on; None: 0

    def covariance(self, first, second):
        pairs = list(zip(first[1], second[1], strict=True))
        distance = math.hypot(*(w * (u - v) for w, (u, v) in zip(self.stretch, pairs, strict=True)))
        middle = self.middle or (0.0,) * len(pairs)
        of_each = (self.effect(u - c, v - c) for c, (u, v) in zip(middle, pairs, strict=True))
        effects = math.fsum(of_each) / len(pairs) if self.share else 0.0
        return self.amplitude * ((1.0 - self.share) * self.matern(distance) + self.share * effects)

    def effect(self, u, v):
        """Cosines on [-1.1, 1.1], of mean square 1 there, weighted as a Matern-5/2 has its frequencies less a millionth
        of the first one's weight, as long as something is left of them, 32 at most; beyond, nothing changes any more.
        """
        u, v = (min(max(w, -1.1), 1.1) for w in (u, v))
        speeds = [j * math.pi / 2.2 for j in range(1, 33)]
        full = [(5.0 / self.effect_lengthscale**2 + speed**2) ** -3 for speed in speeds]
        density = [max(weight - 1e-6 * full[0], 0.0) for weight in full]
        products = [2.0 * math.cos(speed * (u + 1.1)) * math.cos(speed * (v + 1.1)) for speed in speeds]
        return math.fsum(map(operator.mul, density, products)) / math.fsum(density)


def expected_values(theta, x, y, noise=None):
    """Posterior means at the data (n, d) in the units of y, under a Matern-5/2 on compressed values.

    theta: log lengthscale, log noise / amplitude, log strength of the compression and, if the noise (n,) of some values
    is known as a standard deviation (NaN of others), log amplitude.
    """
    lengthscale, nugget, strength = np.exp(theta[:3])
    unit = np.median(y[y > y.min()] - y.min())
    gap = (y - y.min()) / unit
    t = np.log1p(strength * gap) / strength
    model = Blended(1.0, 1.0, 0.0, lengthscale, 0.0, stretch=(1.0,) * x.shape[1], stabilizer=0.0)
    points = [(None, point) for point in x.tolist()]
    latent = model.cross(points, points)
    variance = np.full(len(y), nugget)
    if noise is not None:
        variance += np.nan_to_num(noise / unit / (1.0 + strength * gap)) ** 2 / math.exp(theta[3])
    K = latent + np.diag(variance)
    ones = np.linalg.solve(K, np.ones(len(y)))
    mean = ones @ t / ones.sum()
    predicted = mean + latent @ np.linalg.solve(K, t - mean)
    return y.min() + unit * np.expm1(strength * predicted) / strength


def split(x):
    """(r, a) of one point that is not the centre."""
    x = [float(v) for v in x]
    r = math.hypot(*x)
    return r, tuple(v / r for v in x)


def centered_posterior(model, x, y, center_y, query, *, boundary=False):
    """The posterior at a query that is not the centre: ordinary GP with every centre observation at (0, a*).

    With `boundary` one more point, at the rim in direction a*, enters the variance and not the mean.
    """
    r, a = split(query)
    return _seen_along(model, x, y, center_y, (r, a), boundary=boundary)


def posterior_at_center(model, x, y, center_y, *, boundary=False):
    """Mean and variance of the equal mixture of posteriors at (0, a_i), over the training directions a_i."""
    each = [_seen_along(model, x, y, center_y, (0.0, split(row)[1]), boundary=boundary) for row in x]
    mean = math.fsum(m for m, _ in each) / len(each)
    second_moment = math.fsum(v + (m - mean) ** 2 for m, v in each) / len(each)
    return mean, second_moment


def _seen_along(model, x, y, center_y, query, *, boundary):
    _, a = query
    points = [split(row) for row in x] + [(0.0, a)] * len(center_y)
    values = [*map(float, y), *map(float, center_y)]
    mean, variance = model.posterior(points, values, query)
    if boundary:
        rim = (model.ball_radius, a)
        _, variance = model.posterior([*points, rim], [*values, model.mean], query)
    return mean, variance


def averaged_log_likelihood(model, x, y, center_y):
    """Average over training directions of the log likelihood with every centre observation at (0, a_i)."""
    points = [split(row) for row in x]
    values = [*map(float, y), *map(float, center_y)]
    if not len(center_y):
        return model.log_likelihood(points, values)
    each = [model.log_likelihood(points + [(0.0, a)] * len(center_y), values) for _, a in points]
    return math.fsum(each) / len(each)


def hyperparameters(models):
    """The models as cylbo's batch of hyperparameters."""
    first = models[0]
    return Hyperparameters(
        amplitude=np.array([m.amplitude for m in models]),
        noise_ratio=np.array([m.noise / m.amplitude for m in models]),
        lengthscale=np.array([m.lengthscale for m in models]),
        mean=np.array([m.mean for m in models]),
        warp=None if first.warp is None else tuple(np.array([m.warp for m in models]).T),
        weights=np.array([m.weights for m in models]) if first.weights else None,
    )


def model_of(theta, names, ball_radius, stabilizer=1e-6):
    """The model that a flat vector stands for, read by the names of its entries."""
    value = {name: float(v) for name, v in zip(names, theta, strict=True)}
    common = {
        "ball_radius": ball_radius,
        "amplitude": math.exp(value["log_amplitude"]),
        "noise": math.exp(value["log_noise"]),
        "lengthscale": math.sqrt(math.exp(value["log_lengthscale2"])),
        "mean": value["mean"],
        "stabilizer": stabilizer,
    }
    if "log_c0" not in value:
        return Matern(**common)
    logits = [value["log_c0"]]
    logits += [value["log_c0"] + float(v) for name, v in zip(names, theta, strict=True) if name == "contrast"]
    total = math.fsum(math.exp(v) for v in logits)
    warp = (math.exp(value["log_alpha"]), math.exp(value["log_beta"])) if "log_alpha" in value else None
    return Model(weights=tuple(math.exp(v) / total for v in logits), warp=warp, **common)


def random_models(rng, n, ball_radius, *, degree=3, warped=True, x_scale=1.0, y_scale=1.0, stabilizer=1e-6):
    """Some settings of the hyperparameters, in the supports of method and prior."""
    models = []
    for _ in range(n):
        amplitude = y_scale**2 * math.exp(rng.uniform(-1.0, 1.0))
        models.append(
            Model(
                ball_radius=ball_radius,
                amplitude=amplitude,
                noise=amplitude * 10.0 ** rng.uniform(-4.0, -1.0),
                lengthscale=x_scale * math.exp(rng.uniform(-1.0, 1.0)),
                mean=y_scale * rng.normal(),
                weights=tuple(rng.dirichlet(np.ones(degree + 1)).tolist()),
                warp=(2.0 ** -rng.random(), 2.0 ** rng.random()) if warped else None,
                stabilizer=stabilizer,
            )
        )
    return models


def check_pullback(gp, queries, rng, *, rel=1e-6):
    """Of mean and variance apart and together, each sample with its own weight, against central differences."""
    m, d = queries.shape
    step = 1e-5
    shifts = step * np.eye(d)

    def moments(points):
        found = gp.posterior(points.reshape(-1, d))
        return np.stack([found.mean, found.variance]).reshape(2, len(gp), m, d)

    near, far = (moments(queries[:, None] + j * shifts) - moments(queries[:, None] - j * shifts) for j in (1, 2))
    by_x = (8 * near - far) / (12 * step)  # (2, s, m, d)
    pullback = gp.posterior(queries).pullback
    for use_mean, use_variance in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0)):
        bars = rng.standard_normal((2, len(gp), m)) * np.array([use_mean, use_variance])[:, None, None]
        before = bars.copy()
        found = pullback(*bars)
        assert np.array_equal(bars, before)  # arguments are never modified
        expected = np.einsum("bsm,bsmd->md", bars, by_x)
        scale = np.einsum("bsm,bsmd->md", np.abs(bars), np.abs(by_x)).max(1, keepdims=True)
        assert (np.abs(found - expected) <= rel * scale + 1e-9).all()

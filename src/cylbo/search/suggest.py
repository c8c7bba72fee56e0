"""One round of Bayesian optimisation as a straight line: history and state in, next point, new state and info out.

Read `suggest` from top to bottom; every room it passes through is named after what it holds.
"""

import contextlib
import dataclasses
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.random import Generator

from cylbo.errors import NotPositiveDefiniteError, OutOfTimeError
from cylbo.model.blended import Blend, BlendedGP
from cylbo.model.centred import CenteredGP
from cylbo.model.gp import GP, Data, parallel_posterior
from cylbo.model.hyperparameters import Hyperparameters
from cylbo.model.kernel import Cylindrical
from cylbo.numerics.threads import in_parallel
from cylbo.search.budget import UNLIMITED, Budget, plan
from cylbo.search.climb import Objective, Slope, best_starts
from cylbo.search.data import Known
from cylbo.search.design import needs_covering, needs_initial_design, random_point
from cylbo.search.feasibility import Limit, learn_limits, log_chance, log_chance_slope
from cylbo.search.improvement import log_expected_improvement
from cylbo.search.learn import Fits, Learned, State
from cylbo.search.replicate import knowledge_gradient
from cylbo.search.settings import Method
from cylbo.space.domain import Domain
from cylbo.types import Array

__all__ = ["Proposal", "Rung", "suggest"]

# How a point came about: before there is a model, by the model in full, as a random one because the model's first
# suggestions disappointed, as an evaluated point that is worth a second look because values are noisy or may be, by the
# model with the hyperparameters of the last round (sampling failed), or as a uniform point of the box (nothing else
# worked)
Rung = Literal["random", "model", "covering", "repeated", "last hyperparameters", "space-filling"]

CHUNK_ELEMENTS = 2**17  # entries of a (samples, queries, data) block while screening: 1 MB, about a core's cache
REACH = 0.3  # half-widths of the box, of a search that keeps close to a point
N_REPEATABLE = 10  # points of least expected value, of which with noise one may be evaluated again
# At most this share of evaluations: worth for the next choice is not all, a new point tells about places yet unseen
REPEATS = 0.1


@dataclass(frozen=True, eq=False)
class Proposal:
    """The next point, what the next round begins from, and how the point came about."""

    x: Array  # (d,)
    state: State  # None before the first fit
    limits: Mapping[str, Fits]  # the same of what must be kept
    rung: Rung
    info: Mapping[str, float]  # what the search for it saw, see `Optimizer.health`


def suggest(
    known: Known,
    state: State,
    domain: Domain,
    config: Method,
    rng: Generator,
    limits: Mapping[str, Fits] = MappingProxyType({}),
    budget: Budget = UNLIMITED,
) -> Proposal:
    """The next point to evaluate. Never fails: where the model does, a simpler way is taken, and named."""
    began = time.perf_counter()
    # Nothing to fit: the authors' design after the centre is one uniform point of the box
    if len(known.y) < 2 or needs_initial_design(known, domain, config):
        return Proposal(random_point(known, domain, rng), state, limits, "random", {})
    covering = needs_covering(known, domain, config)
    room = plan(budget, len(known.y), domain.dim, config, began)
    if budget != UNLIMITED:
        known, config = known.thinned(room.points), room.applied(config)
    if covering:
        kept, limits = learn_limits(known, limits, domain, config, room.limits_until)
        return Proposal(random_point(known, domain, rng, kept), state, limits, "covering", {})
    learned = config.learn(known, domain, state, config, rng, room.fit_until)
    kept, limits = learn_limits(known, limits, domain, config, room.limits_until)
    if config.repeats and learned.unsure and not known.settled:
        best = int(known.order[0])
        if known.is_new(known.x[[best]], repeat=True)[0]:
            return Proposal(known.x[best], learned.state, limits, "repeated", {})
    places = [domain] if learned.shelter is None else [domain.near(known.x[learned.shelter], REACH), domain]
    try:
        model = _Model(known, learned, kept, domain, config)
        x, info = model.maximize(places, rng, room.climb_until)
        again = model.more_telling(x)
    except (NotPositiveDefiniteError, _NoCandidateError):
        return Proposal(random_point(known, domain, rng), learned.state, limits, "space-filling", {})
    if budget != UNLIMITED:
        learned_from = min(room.fit_points, room.points)
        info |= {"points": room.points, "fit_points": learned_from, "candidates": room.candidates}
    if again is not None:
        return Proposal(known.x[again], learned.state, limits, "repeated", info)
    rung: Rung = "last hyperparameters" if learned.failed else "model"
    return Proposal(x, learned.state, limits, rung, info | model.predicted(x))


class _NoCandidateError(Exception):
    """The acquisition was a number nowhere, or only where we have been."""


class _Timed:
    """A slope that remembers the best point it was asked for, and stops the climb when time is up."""

    def __init__(self, slope: Slope, dim: int, until: float) -> None:
        self._slope, self._until = slope, until
        self.best_x, self.best_value = np.empty((0, dim)), -np.inf  # no point, or one

    def __call__(self, x: Array) -> tuple[Array, Array]:
        value, gradient = self._slope(x)
        if math.isinf(self._until):
            return value, gradient
        i = int(np.argmax(np.where(np.isnan(value), -np.inf, value)))
        if value[i] > self.best_value:
            self.best_x, self.best_value = x[[i]], float(value[i])
        if time.perf_counter() > self._until:
            raise OutOfTimeError
        return value, gradient


class _Model:
    """The parts that a configuration chooses, joined for one round."""

    def __init__(self, known: Known, learned: Learned, limits: list[Limit], domain: Domain, config: Method) -> None:
        """Raises NotPositiveDefiniteError if no jitter helps."""
        self.known, self.limits, self.domain, self.config = known, limits, domain, config
        self.kernel = learned.kernel or config.kernel(domain.radius)
        self.best, self.to_values, self.observed = learned.best, learned.to_values, learned.observed
        # The chance that a point counts multiplies the improvement: a sum of logarithms, whatever the method climbs
        self.acquisition = log_expected_improvement if limits else config.acquisition
        self.gp = self._condition(learned)

    def _condition(self, learned: Learned) -> GP:
        """One GP per setting on the data, and on believed values where evaluations are open."""
        known, y, noise = self.known, learned.y, learned.noise
        gp = self._gp(known.x, y, learned.h, noise)
        if not len(known.pending):
            return gp
        # They are believed to come out as predicted, so that the variance there goes and the next point lies elsewhere
        believed = gp.posterior(known.pending).mean.mean(0)
        # ... and what they are believed to reach is no improvement any more, or the next one would lie beside them
        if not np.isnan(self.best):
            self.best = min(self.best, float(believed.min()))
        if noise is not None:
            noise = np.concatenate([noise, np.zeros(len(believed))])
        return self._gp(np.concatenate([known.x, known.pending]), np.concatenate([y, believed]), learned.h, noise)

    def _gp(self, x: Array, y: Array, h: Hyperparameters, noise: Array | None) -> GP:
        config, kernel = self.config, self.kernel
        data = Data.of(x, y, kernel)
        if isinstance(kernel, Cylindrical):
            return CenteredGP(
                data, kernel, h, stabilizer=config.stabilizer, boundary=config.boundary, jitters=config.jitters
            )
        if isinstance(kernel, Blend):
            more = 0.0 if noise is None else noise
            return BlendedGP(data, kernel, h, stabilizer=config.stabilizer, jitters=config.jitters, noise=more)
        return GP(data, kernel, h, stabilizer=config.stabilizer, jitters=config.jitters)

    def maximize(self, places: list[Domain], rng: Generator, until: float) -> tuple[Array, dict[str, float]]:
        """The new point (d,) of largest acquisition in the first place that has one, and what there is to say of it."""
        for domain in places[:-1]:  # near a point of a lattice there may be nothing new any more
            with contextlib.suppress(_NoCandidateError):
                x, info = self._maximize(domain, rng, until)
                return x, {**info, "trust_radius": REACH}
        return self._maximize(places[-1], rng, until)

    def _maximize(self, domain: Domain, rng: Generator, until: float) -> tuple[Array, dict[str, float]]:
        config, gp = self.config, self.gp
        few = gp.subset(slice(-config.screening_samples, None))
        starts = best_starts(
            self._candidates(domain, rng),
            self._values(few),
            self._values(gp),
            config.n_starts,
            per_group=config.starts_per_group,
            share=config.screening_share,
            rng=rng,
        )
        if not len(starts):
            raise _NoCandidateError
        slope = _Timed(self._slope, domain.dim, until)
        begun, in_time = starts, True
        try:
            ends, values = config.climb(
                slope, starts, domain, learning_rate=config.learning_rate, max_steps=config.max_steps
            )
        except OutOfTimeError:
            begun, ends, in_time = slope.best_x, slope.best_x, False
        if domain.lattice is not None or not in_time or not self.known.is_new(ends).any():
            # What was climbed to, and is rounded on a lattice, may be a known point; of the starts some are new
            ends, begun = np.concatenate([domain.project(ends), starts]), np.concatenate([begun, starts])
            values = self._values(gp)(ends)
        usable = ~np.isnan(values) & np.isfinite(ends).all(-1) & self.known.is_new(ends)
        if not usable.any():
            raise _NoCandidateError
        begun, ends, values = begun[usable], ends[usable], values[usable]
        chosen = values.argmax()
        x = np.asarray(domain.project(ends[chosen][None])[0])
        info = {"acquisition": float(values[chosen])}
        if in_time:  # otherwise they say where the climb was stopped, not where it led
            info["displacement"] = float(np.linalg.norm(ends[chosen] - begun[chosen]))
            info["spread"] = float(values.max() - values.min())
        if self.limits:
            incautious = [dataclasses.replace(limit, caution=1.0) for limit in self.limits]
            info["probability"] = float(np.exp(log_chance(incautious, x[None])[0]))
        return x, info

    def predicted(self, x: Array) -> dict[str, float]:  # (d,)
        """The value that is expected at x, and the standard deviation of what is going to be seen, noise and all."""
        if self.to_values is None:
            return {}
        posterior = self.gp.posterior(x[None])
        mean, variance = posterior.mean[0, 0], posterior.variance[0, 0] + self.observed
        # Large values are compressed: upwards, where disappointments lie
        value, above = self.to_values(np.array([mean, mean + np.sqrt(variance)])).tolist()
        return {"predicted": value, "predicted_sd": above - value} if math.isfinite(above - value) else {}

    def _values(self, gp: GP) -> Objective:
        chunk = max(16, CHUNK_ELEMENTS // (len(gp) * max(1, len(gp.data.y))))

        def one(x: Array) -> Array:
            value = np.zeros(len(x)) if np.isnan(self.best) else self.acquisition(gp.posterior(x), self.best).value
            return value + log_chance(self.limits, x) if self.limits else value

        def values(x: Array) -> Array:
            return np.concatenate(in_parallel(one, [x[i : i + chunk] for i in range(0, len(x), chunk)]))

        return values

    def _slope(self, x: Array) -> tuple[Array, Array]:
        value, gradient = np.zeros(len(x)), np.zeros_like(x)
        if not np.isnan(self.best):
            posterior = parallel_posterior(self.gp, x)
            acquired = self.acquisition(posterior, self.best)
            value, gradient = acquired.value, posterior.pullback(acquired.mean_bar, acquired.variance_bar)
        if self.limits:
            chance, slope = log_chance_slope(self.limits, x)
            value, gradient = value + chance, gradient + slope
        return value, gradient

    def more_telling(self, x: Array) -> int | None:  # (d,)
        """Which of the evaluated points tells more than x if values are noisy; None if none does.

        What an evaluation is worth is how much lower the least expected value among x and the best points is going to
        be (the knowledge gradient of Frazier et al. 2009 on these points). Expected improvement cannot see what it is
        worth to evaluate a point again.
        """
        gp, known = self.gp, self.known
        if not (self.config.repeats and known.noisy and isinstance(gp, BlendedGP)):
            return None
        if known.n_repeats >= REPEATS * len(known.y):
            return None
        means = np.where(known.allowed, gp.posterior(known.x).mean[0], np.inf)
        leaders = np.argsort(means, stable=True)[:N_REPEATABLE]
        leaders = leaders[np.isfinite(means[leaders]) & known.is_new(known.x[leaders], repeat=True)]
        points = np.concatenate([x[None], known.x[leaders]])
        worth = knowledge_gradient(gp, points, self.observed)
        if self.limits:
            worth = worth * np.exp(log_chance(self.limits, points))
        chosen = int(worth.argmax())
        return int(leaders[chosen - 1]) if chosen else None

    def _candidates(self, domain: Domain, rng: Generator) -> list[Array]:  # each (m, d)
        """Points spread over the box, sprays about the best points and the evaluated points; never the centre."""
        config, known, order = self.config, self.known, self.known.order
        if domain is not self.domain and (inside := domain.contains(known.x[order])).any():
            order = order[inside]
        leaders = known.x[order[: config.n_leaders]]
        sprays = [config.spray(leaders, domain, sd, config.n_spray, rng) for sd in config.spray_scales]
        groups = [config.sobol(domain, config.n_sobol, rng), *sprays, known.x]
        if domain.lattice is not None:
            base = leaders[rng.integers(len(leaders), size=config.n_spray)]
            redrawn = [domain.lattice.redrawn(spray[::2], rng) for spray in sprays]
            groups = [domain.project(group) for group in (*groups, domain.lattice.redrawn(base, rng), *redrawn)]
            groups = [group[known.is_new(group)] for group in groups]
        return [group[(group != 0).any(-1)] for group in groups]

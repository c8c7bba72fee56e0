"""How much work a suggestion may be: what a budget of seconds and of memory leaves room for.

What a round costs is measured once per process on a small problem of the same dimension, and scaled. Long loops (fits,
climbs) are stopped by the clock on top of that, at the best they have seen. Without a budget nothing here is used, and
a run depends on its seed alone.
"""

import dataclasses
import functools
import math
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cylbo.model.beliefs import Beliefs, Form
from cylbo.model.blended import BlendedGP, most_cosines
from cylbo.model.evidence import Evidence
from cylbo.model.fit import at
from cylbo.model.gp import Data
from cylbo.numerics.threads import blas_threads

if TYPE_CHECKING:
    from cylbo.search.settings import Method

__all__ = ["UNLIMITED", "Budget", "Plan", "cost", "plan"]

SAMPLE = 300  # data of the problem that is timed
POWER = 2.5  # with which the cost of a factor grows with the data: between its products of vectors and of matrices

# Shares of the seconds. The rest is slack for what is not foreseen
FIT_ENDS = 0.3  # of the objective
LIMITS_END = 0.4
FACTORS = 0.25
CANDIDATES = 0.15
CLIMB_ENDS = 0.95
FEWEST_STEPS = 20  # evaluations of the evidence that the seconds of a fit must leave room for

FEWEST_POINTS = 50
FEWEST_CANDIDATES = 0.02  # as a share

# Numbers of 8 bytes in memory at once, counted for the model of the most parts: matrices of all points, those of the
# points that hyperparameters are learned from, besides one for each cosine, and features of all coordinates, per cosine
MATRICES = 10
FIT_MATRICES = 10
FEATURES = 5


@dataclass(frozen=True)
class Budget:
    """What a suggestion may cost; None is no limit."""

    seconds: float | None = None
    memory: float | None = None  # bytes beside the data


UNLIMITED = Budget()


@dataclass(frozen=True)
class Plan:
    """What a budget leaves room for."""

    points: int  # data of the process
    fit_points: int  # most data that hyperparameters are learned from: of limits there are more than `points`
    candidates: float  # share of the configuration's
    fit_until: float = math.inf  # on the clock of `time.perf_counter`
    limits_until: float = math.inf
    climb_until: float = math.inf

    def applied(self, config: "Method") -> "Method":
        """The configuration with as many candidates and data."""
        return dataclasses.replace(
            config,
            fit_points=self.fit_points,
            n_sobol=math.ceil(self.candidates * config.n_sobol),
            n_spray=math.ceil(self.candidates * config.n_spray),
        )


def plan(budget: Budget, n: int, d: int, config: "Method", began: float) -> Plan:
    """What there is room for with n data in d dimensions, when the clock began at `began`."""
    points, fit_points, candidates = float(n), float(config.fit_points), 1.0
    until: tuple[float, ...] = (math.inf,) * 3
    if budget.seconds is not None:
        measured = cost(d)
        points = min(max(_within(FACTORS * budget.seconds, measured.factor), FEWEST_POINTS), n)
        # Every form gets its share of the fit
        fit_points = _within(FIT_ENDS * budget.seconds / (FEWEST_STEPS * len(config.forms)), measured.evidence)
        each = measured.candidate * (points / SAMPLE) ** 2
        total = config.n_sobol + config.n_spray * len(config.spray_scales) + points
        candidates = CANDIDATES * budget.seconds / (each * total)
        until = tuple(began + share * budget.seconds for share in (FIT_ENDS, LIMITS_END, CLIMB_ENDS))
    if budget.memory is not None:
        room, most = budget.memory / 8.0, most_cosines(d)
        fit_points = min(fit_points, math.sqrt(0.5 * room / (FIT_MATRICES + most)))
        # MATRICES p^2 + FEATURES most d p = half of the room
        b, c = FEATURES * most * d / MATRICES, 0.5 * room / MATRICES
        points = min(points, 0.5 * (math.sqrt(b * b + 4.0 * c) - b))
    points = int(min(max(points, FEWEST_POINTS), n))
    fit_points = int(min(max(fit_points, FEWEST_POINTS), config.fit_points))
    return Plan(points, fit_points, min(max(candidates, FEWEST_CANDIDATES), 1.0), *until)


def _within(seconds: float, each: float) -> float:
    """How many data a step may have that takes `each` seconds with SAMPLE of them."""
    return float(SAMPLE * (seconds / each) ** (1.0 / POWER))


@dataclass(frozen=True)
class _Cost:
    """Seconds with SAMPLE data."""

    evidence: float  # of one value and gradient
    factor: float  # of everything that a round factorises
    candidate: float  # of one prediction


@functools.cache
def cost(d: int) -> _Cost:
    """Measured the first time it is asked for, which takes longer than a short suggestion may."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1.0, 1.0, (SAMPLE, d)), rng.standard_normal(SAMPLE)
    evidence = Evidence(x, y, Beliefs(), Form(stretched=True, effects=True))
    theta = evidence.prior_mean.copy()
    theta[4] = evidence.lower[4]  # where there are most cosines
    queries = rng.uniform(-1.0, 1.0, (SAMPLE, d))

    def seconds(of: Callable[[], object]) -> float:
        return min(timeit.repeat(of, number=1, repeat=4)[1:])  # the first one warms up

    def factorised() -> BlendedGP:
        process = at(evidence, theta)
        return BlendedGP(Data.of(x, process.t, process.kernel), process.kernel, process.h, stabilizer=0.0)

    with blas_threads(1):
        gp = factorised()
        return _Cost(
            seconds(lambda: evidence(theta)), seconds(factorised), seconds(lambda: gp.posterior(queries)) / SAMPLE
        )

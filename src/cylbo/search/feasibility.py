"""Where an evaluation can be expected to count: the chance that it neither fails nor breaks a constraint.

    x (n, d) data     c (n,) a constraint's values, met where <= 0; or 1 where an evaluation failed and 0 where not

Each of them gets a process like the objective's (`model/evidence.py`): a failure is a value of 1 among zeros and
succeeds where less than one half is expected (least-squares classification, Rasmussen and Williams 2006, Sec. 6.5).
Nothing is invented as a value of the objective. Constraints are seen through sign(c) log(1 + |c|), which keeps the
sign and tames the tails (Eriksson and Poloczek 2021).
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr

from cylbo.errors import NotPositiveDefiniteError
from cylbo.model.beliefs import Form
from cylbo.model.blended import BlendedGP
from cylbo.model.gp import Data, Posterior
from cylbo.model.scaling import compressed, in_gaps
from cylbo.search.data import Known
from cylbo.search.improvement import LOG_SQRT_2PI
from cylbo.search.learn import Fits, fits_and_process
from cylbo.space.domain import Domain
from cylbo.types import Array

if TYPE_CHECKING:
    from cylbo.search.settings import Method

__all__ = ["Limit", "learn_limits", "log_chance", "log_chance_slope"]

CAUTION = 20.0  # if all of the last evaluations failed
FORMS = (Form(), Form(stretched=True))
LARGEST = 1e300  # of which two can still be added


@dataclass(frozen=True, eq=False)
class Limit:
    """A process and the value that it must stay below."""

    gp: BlendedGP
    threshold: float
    noise: float  # variance of an observation about the process
    caution: float = 1.0  # the power that the chance is raised to

    def log_chance(self, x: Array) -> Array:  # (m, d) -> (m,)
        """The log of Phi((threshold - mean) / sd), `caution` times."""
        return np.asarray(self.caution * log_ndtr(self._margin(x)[2])[0])

    def slope(self, x: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, d)
        """The same and its gradient."""
        posterior, sd, z = self._margin(x)
        value = log_ndtr(z)
        slope = np.exp(-0.5 * z * z - LOG_SQRT_2PI - value)
        gradient = posterior.pullback(-slope / sd, -0.5 * slope * z / sd**2)
        return self.caution * value[0], self.caution * gradient

    def _margin(self, x: Array) -> tuple[Posterior, Array, Array]:  # (m, d) -> ..., (1, m), (1, m)
        """The posterior, the standard deviation of an observation, and how many of them the threshold is away."""
        posterior = self.gp.posterior(x)
        sd = np.sqrt(posterior.variance + self.noise)
        return posterior, sd, (self.threshold - posterior.mean) / sd


def log_chance(limits: Sequence[Limit], x: Array) -> Array:  # (m, d) -> (m,)
    """The log of the chance that all limits are kept, taken as independent."""
    return sum((limit.log_chance(x) for limit in limits), np.zeros(len(x)))


def log_chance_slope(limits: Sequence[Limit], x: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, d)
    """The same and its gradient, which costs as much again: the many candidates are scored without it."""
    value, gradient = np.zeros(len(x)), np.zeros_like(x)
    for limit in limits:
        more, slope = limit.slope(x)
        value, gradient = value + more, gradient + slope
    return value, gradient


def learn_limits(
    known: Known, last: Mapping[str, Fits], domain: Domain, config: "Method", until: float = math.inf
) -> tuple[list[Limit], dict[str, Fits]]:
    """A limit for failures, if there are any, and for each constraint; and where the next round begins."""
    found: list[Limit] = []
    after: dict[str, Fits] = {}

    def learn(
        name: str, x: Array, c: Array, border: float, *, config: "Method" = config, noisy: bool, caution: float = 1.0
    ) -> None:
        count = len(x) + len(known.left_out)
        fits, process = fits_and_process(
            x, c, domain, last.get(name), config, forms=FORMS, judged=1.0, count=count, until=until
        )
        after[name] = fits
        # Where nothing was seen on the good side, the compression goes on as a straight line
        gap = in_gaps(border - c.min(), c) if border >= c.min() else -in_gaps(c.min() - border, c)
        log_strength = float(process.theta[2])
        threshold = float(compressed(gap[None], log_strength)[0][0]) if gap > 0.0 else float(gap)
        try:
            gp = BlendedGP(Data.of(x, process.t, process.kernel), process.kernel, process.h, stabilizer=0.0)
        except NotPositiveDefiniteError:  # better no limit than no suggestion
            return
        noise = float(process.h.noise_ratio[0] * process.h.amplitude[0]) if noisy else 0.0
        found.append(Limit(gp, threshold, noise, caution))

    if len(known.failed):
        x = np.concatenate([known.x, known.failed])
        # Suggestions lie where the model hopes most, also for luck: what it promises there is too much, and more so
        # the more often it was wrong of late
        caution = 1.0 + CAUTION * known.failed_lately
        failed = np.repeat([0.0, 1.0], [len(known.x), len(known.failed)])
        # Two values have no tail. A fit would compress them all the same, and what is halfway would be no more
        weakest = (config.beliefs.log_compression_range[0],) * 2
        beliefs = dataclasses.replace(config.beliefs, log_compression_range=weakest)
        plain = dataclasses.replace(config, beliefs=beliefs)
        learn("failure", x, failed, 0.5, config=plain, noisy=True, caution=caution)
    for j, c in enumerate(known.constraints.T):
        told = np.isfinite(c)
        tamed = _tamed(c[told])
        if len(tamed) and np.ptp(tamed) > 0.0:
            learn(f"constraint {j}", known.x[told], tamed, 0.0, noisy=False)
    return found, after


def _tamed(c: Array) -> Array:  # (n,) -> (n,)
    """sign(c) log(1 + |c| / scale) with the middle magnitude as the scale; the sign alone if that is 0."""
    size = 0.5 * np.abs(c)  # half of it, for the middle one of two is their sum on the way
    scale = float(np.median(size)) if len(c) else 0.0
    return np.sign(c) * (np.log1p(np.minimum(size / scale, LARGEST)) if scale > 0.0 else 1.0)

"""What is kept of a run for good: a few numbers and its curve, small enough for a table of plain text.

A curve has a fixed number of points for every run. Its point k is the best value after the fraction k / 64 of the
budget, rounded up to a whole evaluation; point 0 is that of the first evaluation. Halves, quarters and eighths of a
budget are thus among the points. A run that was stopped keeps its last number.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from cylbo.bench import functions
from cylbo.bench.store import Key, Run, Status
from cylbo.types import Array

__all__ = ["PARTS", "Minimum", "Name", "Record", "evaluations_of_points", "known_minimum", "recorded", "rounded"]

PARTS = 64
# Crashes count once a method could know where they happen
LEARNED_AFTER = 60

# A run made `batch` points at a time is named by the key and the batch size
Name = tuple[Key, int]
Minimum = Callable[[str, int, int], float | None]


@dataclass(frozen=True)
class Record:
    """A run, as it stands in the table."""

    key: Key
    batch: int
    status: Status
    time_limit: float
    evaluations: int
    # The lowest value; infinite if there is none
    best: float
    # The minimum of the instance; None where it is not known
    minimum: float | None
    # The value without noise at the point recommended in the end; None where there is no noise
    true_value: float | None
    # Seconds of all suggestions, and the median of one in the second half of the run
    seconds: float
    late_seconds: float
    # Evaluations that crashed after the first LEARNED_AFTER
    late_crashes: int
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: str = "unknown"
    cores: str = "unknown"
    threads: str = "unknown"
    python: str = "unknown"
    # The last line of a failed run's traceback
    error: str = ""
    # Points 0 to PARTS: the best value so far, or with noise the true value at the recommended point, less the
    # minimum where that is known; infinite before there is a value
    curve: tuple[float, ...] = field(default=(), repr=False)

    @property
    def name(self) -> Name:
        """What no other record has."""
        return self.key, self.batch

    @property
    def order(self) -> tuple[object, ...]:
        """Where the record stands in the table."""
        problem, dim, budget, method, seed, _ = self.key
        return problem, dim, budget, self.batch, method, seed

    @property
    def stopped(self) -> bool:
        """Whether the time limit ended the run."""
        return self.status == "timeout"

    @property
    def regret(self) -> float | None:
        """How far the best value lies above the minimum; None where that is not known."""
        return None if self.minimum is None else self.best - self.minimum

    @property
    def values(self) -> Array:  # (PARTS + 1,)
        """The curve with the minimum added again, that is in units of the problem."""
        return np.array(self.curve) + (self.minimum or 0.0)

    def after(self, n: int) -> float:
        """The curve in units of the problem after n evaluations, or at its last point before."""
        last = int(np.searchsorted(evaluations_of_points(self.key.budget), n, side="right")) - 1
        return float(self.values[last])

    def best_after(self, n: int) -> float:
        """The lowest value of the first n evaluations: exactly that of the table where n is all of them."""
        return self.best if n >= self.key.budget else self.after(n)


def evaluations_of_points(budget: int) -> list[int]:
    """After how many evaluations each point of a curve is taken."""
    return [1, *(-(-budget * k // PARTS) for k in range(1, PARTS + 1))]


def rounded(number: float, digits: int) -> float:
    """The number with so many significant digits."""
    return float(f"{number:.{digits}g}")


def points(series: Array, budget: int, lowest: float) -> tuple[float, ...]:
    """The points of a curve from the number after every evaluation (n,), n <= budget."""
    if len(series) == 0:
        return (math.inf,) * (PARTS + 1)
    at = np.minimum(evaluations_of_points(budget), len(series)) - 1
    return tuple(rounded(number, 5) for number in (series[at] - lowest).tolist())


@cache
def known_minimum(problem: str, dim: int, seed: int) -> float | None:
    """The minimum of that instance; None if it is not known or the package of the problem is not installed."""
    try:
        return functions.problem(problem, dim, instance=seed).minimum
    except (ImportError, ValueError):
        return None


def recorded(run: Run, minimum: Minimum = known_minimum) -> Record:
    """The record of a run of a store; a value that is not a number is a crashed evaluation."""
    lowest = minimum(run.key.problem, run.key.dim, run.key.seed)
    so_far = np.fmin.accumulate(np.where(np.isnan(run.values), np.inf, run.values))
    late = run.seconds[len(run.seconds) // 2 :]
    words = run.error.strip().splitlines()
    about = run.environment
    return Record(
        key=run.key._replace(batch=1),
        batch=run.key.batch,
        status=run.status,
        time_limit=run.time_limit,
        evaluations=len(run.values),
        best=float(so_far[-1]) if len(so_far) else math.inf,
        minimum=lowest,
        true_value=None,
        seconds=rounded(float(run.seconds.sum()), 6),
        late_seconds=rounded(float(np.median(late)), 6) if len(late) else 0.0,
        late_crashes=int(np.isnan(run.values[LEARNED_AFTER:]).sum()),
        versions={str(name): str(version) for name, version in about.get("versions", {}).items()},
        **{name: str(about.get(name, "unknown")) for name in ("machine", "cores", "threads", "python")},
        error=words[-1].strip() if words else "",
        curve=points(so_far, run.key.budget, lowest or 0.0),
    )

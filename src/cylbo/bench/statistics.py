"""Comparing methods: on one problem by their standard errors, over n problems by Friedman's and Nemenyi's tests.

J. Demsar, Statistical comparisons of classifiers over multiple data sets, JMLR 7 (2006), Sec. 3.2.2. The blocks are the
problems, each with one number per method. Seeds are not blocks: the runs of one problem are no independent evidence
about other problems, and counting them would make every difference look certain.

    losses (n, k)  lower is better      R (k,)  average ranks, 1 is best
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from cylbo.types import Array

__all__ = [
    "ALPHA",
    "LEVEL_RULE",
    "Comparison",
    "compare",
    "critical_difference",
    "friedman_p_value",
    "lowest_and_level",
    "ranks",
]

ALPHA = 0.05
STANDARD_ERRORS = 2.0
LEVEL_RULE = (
    "Bold are the lowest and those level with it: a method whose mean is no more than two "
    "standard errors of the difference higher, √(s²/n + t²/m) with the sample standard deviations s and t of n and m "
    "runs. A method with a single run is not compared and not bold."
)


def lowest_and_level(losses: Mapping[str, Array], center: Callable[[Array], float]) -> tuple[str, ...]:
    """The method with the lowest center, then those level with it, in the order given.

    A method is level if its mean is at most two standard errors of the difference above that of the lowest. With
    fewer than two runs there is no standard error, and a method is left out.
    """
    several = {name: runs for name, runs in losses.items() if len(runs) > 1}
    if not several:
        return ()
    best = min(several, key=lambda name: float(center(several[name])))
    level = [name for name in several if name != best and _is_level(several[best], several[name])]
    return best, *level


def _is_level(best: Array, other: Array) -> bool:
    error = np.sqrt(np.var(best, ddof=1) / len(best) + np.var(other, ddof=1) / len(other))
    return bool(np.mean(other) - np.mean(best) <= STANDARD_ERRORS * error)


def ranks(losses: Array) -> Array:  # (n, k) -> (n, k)
    """Ranks within each row, 1 for the lowest; equal losses share the mean of their ranks."""
    return np.asarray(stats.rankdata(losses, axis=1), dtype=float)


def friedman_p_value(losses: Array) -> float:  # (n, k)
    """Probability of ranks at least so unequal if the methods did not differ; chi-square with k - 1 degrees.

    chi^2 = 12 n / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4), divided by 1 - sum (t^3 - t) / (n k (k^2 - 1)) over
    groups of t ties (Demsar 2006, Sec. 3.2.2; he leaves the usual division for ties out). If everything is tied it is
    1, where SciPy's `friedmanchisquare` divides by zero; unlike that one it also takes k = 2.
    """
    n, k = losses.shape
    table = ranks(losses)
    ties = sum(float((sizes**3 - sizes).sum()) for sizes in (np.unique(row, return_counts=True)[1] for row in losses))
    correction = 1.0 - ties / (n * k * (k**2 - 1))
    if correction <= 0.0:
        return 1.0
    mean_ranks = table.mean(axis=0)
    statistic = 12 * n / (k * (k + 1)) * (float((mean_ranks**2).sum()) - k * (k + 1) ** 2 / 4) / correction
    return float(stats.chi2.sf(statistic, k - 1))


def critical_difference(k: int, n: int, alpha: float = ALPHA) -> float:
    """Average ranks of k methods over n problems differ significantly if at least by q_alpha sqrt(k (k + 1) / (6 n)).

    q_alpha is the quantile of the studentized range for infinite degrees of freedom divided by sqrt(2) (Table 5 (a)).
    """
    q = float(stats.studentized_range.ppf(1.0 - alpha, k, np.inf)) / np.sqrt(2.0)
    return float(q * np.sqrt(k * (k + 1) / (6.0 * n)))


@dataclass(frozen=True)
class Comparison:
    """Methods in the order of their average rank."""

    methods: tuple[str, ...]
    mean_ranks: tuple[float, ...]
    median_ranks: tuple[float, ...]
    n_problems: int
    p_value: float  # Friedman
    critical_difference: float  # Nemenyi

    @property
    def significant(self) -> bool:
        """Whether the methods differ at all; only then may pairs of them be compared."""
        return self.p_value < ALPHA

    @property
    def like_the_best(self) -> tuple[str, ...]:
        """The methods whose rank is not significantly above the best, without the best itself."""
        near = (m for m, r in zip(self.methods, self.mean_ranks, strict=True) if self._close(self.mean_ranks[0], r))
        return tuple(near)[1:]

    @property
    def groups(self) -> list[tuple[int, int]]:
        """First and last index of every largest run of at least two methods that do not differ significantly."""
        found: list[tuple[int, int]] = []
        for first, low in enumerate(self.mean_ranks):
            last = max(i for i, high in enumerate(self.mean_ranks) if i >= first and self._close(low, high))
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found

    def _close(self, low: float, high: float) -> bool:
        return high - low < self.critical_difference


def compare(losses: Mapping[str, Mapping[str, float]]) -> Comparison | None:
    """Rank methods over problems, method -> problem -> loss; None with fewer than two methods or problems.

    Every method must have a loss for every problem. Methods of the same rank keep the order in which they were given.
    """
    names = list(losses)
    problems = list(losses[names[0]]) if names else []
    if min(len(names), len(problems)) < 2:
        return None
    table = np.array([[losses[name][problem] for name in names] for problem in problems])
    rank_table = ranks(table)
    means, medians = rank_table.mean(axis=0), np.median(rank_table, axis=0)
    order = np.argsort(means, kind="stable")
    return Comparison(
        methods=tuple(names[i] for i in order),
        mean_ranks=tuple(float(means[i]) for i in order),
        median_ranks=tuple(float(medians[i]) for i in order),
        n_problems=len(problems),
        p_value=friedman_p_value(table),
        critical_difference=critical_difference(len(names), len(problems)),
    )

"""The commands that make the runs of a file again, those of methods that this version knows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cylbo.bench.methods import METHODS
from cylbo.bench.pages import in_order
from cylbo.bench.record import Record
from cylbo.bench.runner import TIME_LIMIT
from cylbo.bench.store import Key
from cylbo.bench.suites import Suite

__all__ = ["commands"]


class _Options(NamedTuple):
    """Of one command, besides dimensions and methods."""

    problems: tuple[str, ...]
    seeds: int  # 0, 1, ... up to the highest
    budget: int | None  # None is the suite's
    time_limit: float | None  # None is the usual one


def commands(shown: Iterable[tuple[Suite, Sequence[Record]]]) -> list[str]:
    """A command for all runs that differ in nothing but dimension and method; runs of several suites count once."""
    seen: set[Key] = set()
    lines = []
    for suite, runs in shown:
        new = [run for run in runs if run.key not in seen]
        seen |= {run.key for run in new}
        lines += [_command(suite, *each) for each in _together(suite, new)]
    return lines


def _together(suite: Suite, runs: Sequence[Record]) -> list[tuple[list[int], tuple[str, ...], _Options]]:
    """Dimensions, methods and the options that they share, in the order of dimensions and of the lab's methods."""
    of_method: dict[tuple[str, int, int], list[Record]] = defaultdict(list)
    for run in runs:
        if run.key.method in METHODS:
            of_method[run.key.method, run.key.dim, run.key.budget].append(run)
    methods: dict[tuple[int, _Options], list[str]] = defaultdict(list)
    for (method, dim, budget), its in of_method.items():
        own = suite.budgets.get(dim) == budget
        limit = max((run.time_limit for run in its if run.stopped), default=TIME_LIMIT)
        limit = max([limit, *(run.time_limit for run in its if run.seconds > limit)])
        options = None if own else budget, None if limit == TIME_LIMIT else limit
        seeds = {run.key.problem: run.key.seed + 1 for run in sorted(its, key=lambda run: run.key.seed)}
        for count in set(seeds.values()):
            problems = tuple(problem for problem in suite.problems if seeds.get(problem) == count)
            methods[dim, _Options(problems, count, *options)].append(method)
    dims: dict[tuple[tuple[str, ...], _Options], list[int]] = defaultdict(list)
    for (dim, shared), names in methods.items():
        dims[in_order(names), shared].append(dim)
    order = list(METHODS)
    lines = [(sorted(of_all), names, shared) for (names, shared), of_all in dims.items()]
    return sorted(lines, key=lambda line: (line[0], order.index(line[1][0]), str(line[2])))


def _command(suite: Suite, dims: Sequence[int], methods: Sequence[str], options: _Options) -> str:
    words: list[object] = ["cylbo", "bench", "run", suite.name, "--dims", *dims]
    if options.budget is not None:
        words += ["--budget", options.budget]
    words += ["--seeds", options.seeds]
    if options.time_limit is not None:
        words += ["--time-limit", f"{options.time_limit:g}"]
    if options.problems != suite.problems:
        words += ["--functions", *options.problems]
    return " ".join(map(str, [*words, "--methods", *methods, "--out", "results.db"]))

"""The commands that make the runs of a file again."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cylbo.bench.pages import in_order
from cylbo.bench.store import Key, Run
from cylbo.bench.suites import Suite

__all__ = ["commands"]


class _Options(NamedTuple):
    """Of one command, besides dimensions and methods."""

    problems: tuple[str, ...]
    seeds: int  # 0, 1, ...
    budget: int | None  # None is the suite's
    time_limit: float | None  # None if no run was stopped: the others do not depend on it


def commands(shown: Iterable[tuple[Suite, Sequence[Run]]]) -> list[str]:
    """A command for all runs that differ in nothing but dimension and method; runs of several suites count once."""
    seen: set[Key] = set()
    lines = []
    for suite, runs in shown:
        new = [run for run in runs if run.key not in seen]
        seen |= {run.key for run in new}
        lines += [_command(suite, *each) for each in _together(suite, new)]
    return lines


def _together(suite: Suite, runs: Sequence[Run]) -> list[tuple[list[int], tuple[str, ...], _Options]]:
    """Dimensions, methods and the options that they share, in the order of dimensions and of the lab's methods."""
    of_method: dict[tuple[str, int, int], list[Run]] = defaultdict(list)
    for run in runs:
        of_method[run.key.method, run.key.dim, run.key.budget].append(run)
    methods: dict[tuple[int, _Options], list[str]] = defaultdict(list)
    for (method, dim, budget), its in of_method.items():
        budget_option = None if suite.budgets.get(dim) == budget else budget
        limit = max((run.time_limit for run in its if run.status == "timeout"), default=None)
        seeds = {run.key.problem: run.key.seed + 1 for run in sorted(its, key=lambda run: run.key.seed)}
        for count in set(seeds.values()):
            problems = tuple(problem for problem in suite.problems if seeds.get(problem) == count)
            methods[dim, _Options(problems, count, budget_option, limit)].append(method)
    dims: dict[tuple[tuple[str, ...], _Options], list[int]] = defaultdict(list)
    for (dim, options), names in methods.items():
        dims[in_order(names), options].append(dim)
    order = in_order(run.key.method for run in runs)
    lines = [(sorted(of_all), names, options) for (names, options), of_all in dims.items()]
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

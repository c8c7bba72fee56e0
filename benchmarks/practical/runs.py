"""Runs of the practical experiments: made one process each, kept in a JSONL file, never repeated."""

import dataclasses
import functools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cylbo.bench.figures import Style
from cylbo.bench.methods import METHODS
from cylbo.bench.worker import environment

from ..pool import append_line, make_each, read_lines
from .players import Array, Player, Point

RECOMMEND_EVERY = 10  # evaluations: to name the best point may take a fit of its own
PACKAGES = ("botorch", "cma", "optuna", "scikit-learn", "torch")


class Key(NamedTuple):
    """What names a run: it is made once."""

    experiment: str
    problem: str
    method: str
    budget: int
    seed: int


@dataclass(frozen=True)
class Run:
    """One optimisation with everything worth keeping."""

    key: Key
    values: list[float | None]  # (n,) as they were told, n < budget if the time was up; None where it crashed
    seconds: list[float]  # (n,) of the processor, spent suggesting each
    recommended: list[tuple[int, float]]  # after so many evaluations, the noise-free value at the recommended point
    time_limit: float
    environment: Mapping[str, Any]

    @property
    def stopped(self) -> bool:
        """Whether the time was up before the budget."""
        return len(self.values) < self.key.budget

    @property
    def best_so_far(self) -> Array:  # (n,)
        """The lowest value up to each evaluation; infinite before there is one."""
        return np.minimum.accumulate([np.inf if value is None else value for value in self.values])


Cells = Mapping[str, Mapping[str, Sequence[Run]]]  # problem -> method -> runs, each in the order of the experiment


@dataclass(frozen=True)
class Experiment:
    """What is run under one name, and how its page is written."""

    name: str
    title: str
    about: str
    problems: Sequence[str]
    methods: Sequence[str]
    budget: int
    seeds: int
    play: Callable[[Key, float], "Played"]
    lines: Callable[[Cells], list[str]]  # the tables, as Markdown
    curve: Callable[[Run], Array]  # what the picture shows of a run, (n,)
    regret: bool  # whether that is a distance to the known minimum; else the picture shows that to the lowest found
    looks: Mapping[str, Style]  # in pictures, of methods that the lab does not have

    def keys(self, problems: Sequence[str], methods: Sequence[str], budget: int, seeds: int) -> list[Key]:
        """Seed by seed, so that an early stop leaves every method with as many."""
        return [Key(self.name, p, m, budget, s) for s in range(seeds) for p in problems for m in methods]

    def cells(self, runs: Sequence[Run]) -> Cells:
        """The runs by problem and method."""
        found: dict[str, dict[str, list[Run]]] = {p: {m: [] for m in self.methods} for p in self.problems}
        for run in sorted(runs, key=lambda run: run.key):
            found[run.key.problem][run.key.method].append(run)
        by_problem = {p: {m: made for m, made in row.items() if made} for p, row in found.items()}
        return {p: row for p, row in by_problem.items() if row}


class Played(NamedTuple):
    """The outcome of a run."""

    values: list[float | None]
    seconds: list[float]
    recommended: list[tuple[int, float]]


def play(
    player: Player,
    evaluate: Callable[[Point], float | None],
    budget: int,
    time_limit: float,
    *,
    batch: int = 1,
    truth: Callable[[Point], float] | None = None,
) -> Played:
    """Ask, evaluate and tell, `batch` points at a time, until the budget or the time is spent.

    With a `truth` the player is asked now and then, and at the end, which of its points it recommends. Seconds are
    those of the processor, whatever else the machine does: a run has one thread.
    """
    played, began = Played([], [], []), time.process_time()
    while (left := budget - len(played.values)) > 0 and time.process_time() - began < time_limit:
        points = []
        for _ in range(min(batch, left)):
            asked = time.process_time()
            points.append(player.ask())
            played.seconds.append(time.process_time() - asked)
        for point in points:
            played.values.append(evaluate(point))
            player.tell(played.values[-1])
        n, out_of_time = len(played.values), time.process_time() - began >= time_limit
        if truth is not None and (n % RECOMMEND_EVERY == 0 or n == budget or out_of_time):
            asked = time.process_time()
            point = player.recommended()
            played.seconds[-1] += time.process_time() - asked  # a model that was fitted for it serves the next point
            played.recommended.append((n, truth(point)))
    return played


def make(key: Key, play_of: Callable[[Key, float], Played], time_limit: float) -> Run:
    """One run from beginning to end; called in a process of its own."""
    warnings.simplefilter("ignore")  # the peers' own, about their own input, and those of models that do not converge
    about = dataclasses.replace(METHODS["default"], packages=tuple((name, name) for name in PACKAGES))
    return Run(key, *play_of(key, time_limit), time_limit=time_limit, environment=environment(about))


def read(path: Path) -> list[Run]:
    """The runs in the file, the last of each key; none if there is no file."""
    runs = [Run(**(fields | {"key": Key(*fields["key"])})) for fields in read_lines(path)]
    return list({run.key: run for run in runs}.values())


def append(run: Run, path: Path) -> None:
    """Keep one more."""
    append_line(dataclasses.asdict(run), path)


def missing(keys: Sequence[Key], made: Sequence[Run], time_limit: float) -> list[Key]:
    """The runs still to be made; also those that were stopped at a shorter limit."""
    enough = {run.key for run in made if not run.stopped or run.time_limit >= time_limit}
    return [key for key in keys if key not in enough]


def make_missing(experiment: Experiment, keys: Sequence[Key], path: Path, *, jobs: int, time_limit: float) -> int:
    """Make the runs that the file does not hold; how many failed."""
    to_make = missing(keys, read(path), time_limit)
    work = functools.partial(make, play_of=experiment.play, time_limit=time_limit)
    return make_each(experiment.name, work, to_make, lambda _, run: append(run, path), jobs=jobs)

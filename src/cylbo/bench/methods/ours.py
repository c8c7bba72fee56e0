"""The methods of this library: the default, and the paper's with its variants."""

import dataclasses
import math
from functools import partial

import cylbo
from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective
from cylbo.bench.problems import Need
from cylbo.types import Region

__all__ = ["METHODS", "TOLD", "search"]

ALL_NEEDS: frozenset[Need] = frozenset({"noise", "crashes", "mixed", "batches"})
PENALTY = 1e6


def search(
    objective: Objective,
    seed: int,
    *,
    config: cylbo.Method = cylbo.DEFAULT,
    region: Region = "box",
    told_noise: bool = False,
    penalty: float | None = None,
) -> None:
    """`cylbo.Optimizer` with that configuration, as it comes.

    It may be told the standard deviation of the noise with every value, and of a crash a penalty as if it were one.
    """
    place = objective.bounds if objective.space is None else objective.space
    opt = cylbo.Optimizer(place, seed=seed, method=config, region=region)
    while objective.left:
        trials = [opt.ask() for _ in range(min(objective.batch, objective.left))]
        values = objective.evaluate([trial.x if trial.params is None else trial.params for trial in trials])
        for trial, value in zip(trials, values, strict=True):
            if not math.isnan(value):
                opt.tell(trial, value, std=objective.noise if told_noise else None)
            elif penalty is None:
                opt.fail(trial)
            else:
                opt.tell(trial, penalty)
        if objective.asks_for_best and opt.best is not None:
            objective.recommend(opt.best.x)


def _method(name: str, label: str, config: cylbo.Method, region: Region, source: str = "Oh et al. 2018") -> Method:
    return Method(name, label, source, partial(search, config=config, region=region))


# The paper searches the ball around the box with its own kernel, and the box with the Matern (Sec. 4)
METHODS = (
    Method("default", "cylbo", "this library", search, handles=ALL_NEEDS),
    _method("cylinder", "cylbo, cylinder", cylbo.METHODS["cylinder"], "box", "this library"),
    _method("paper", "BOCK", cylbo.PAPER, "ball"),
    _method("paper-w", "BOCK-W", cylbo.METHODS["paper-w"], "ball"),
    _method("paper+b", "BOCK+B", cylbo.METHODS["paper+b"], "ball"),
    _method("matern", "Matern", cylbo.METHODS["matern"], "box"),
    *(
        _method(f"paper-p{p}", f"BOCK, P = {p}", dataclasses.replace(cylbo.PAPER, angular_degree=p), "ball")
        for p in (5, 7, 9)
    ),
)
# The default, told more than it asks for
TOLD = (
    Method(
        "cylbo, told the sd",
        "cylbo, told the sd",
        "this library",
        partial(search, told_noise=True),
        handles=frozenset({"noise"}),
    ),
    Method(
        "cylbo, told a million",
        "cylbo, told a million",
        "this library",
        partial(search, penalty=PENALTY),
        handles=frozenset({"crashes"}),
    ),
)

"""The methods of this library: the default, and the paper's with its variants."""

import dataclasses
from functools import partial

import cylbo
from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective
from cylbo.types import Region

__all__ = ["METHODS"]


def search(objective: Objective, seed: int, *, config: cylbo.Method, region: Region) -> None:
    """`cylbo.minimize` with that configuration."""
    cylbo.minimize(
        objective, objective.bounds, budget=objective.budget, seed=seed, method=config, region=region, center=None
    )


def _method(name: str, label: str, config: cylbo.Method, region: Region, source: str = "Oh et al. 2018") -> Method:
    return Method(name, label, source, partial(search, config=config, region=region))


# The paper searches the ball around the box with its own kernel, and the box with the Matern (Sec. 4)
METHODS = (
    _method("default", "cylbo", cylbo.DEFAULT, "box", "this library"),
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

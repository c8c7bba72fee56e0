"""What the lab knows of a method: its name, what it needs, how to run it."""

import importlib.util
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field

from cylbo.bench.objective import Objective, Spent
from cylbo.bench.problems import Need, needs

__all__ = ["Method"]


@dataclass(frozen=True)
class Method:
    """A way to spend the budget of an `Objective`.

    `search(objective, seed)` calls the objective at its centre first and then until it raises `Spent`; it may return
    earlier. Heavy packages are imported inside, never with the module.
    """

    name: str  # on the command line
    label: str  # in tables and pictures
    source: str  # the paper or package it comes from
    search: Callable[[Objective, int], object] = field(repr=False)
    packages: tuple[tuple[str, str], ...] = ()  # (import name, pip name) of what it needs beyond cylbo itself
    # What it can do beside a function on the box, see `objective.py`
    handles: frozenset[Need] = frozenset()

    @property
    def missing(self) -> tuple[str, ...]:
        """The pip names of the packages that are not installed."""
        absent = (pip for module, pip in self.packages if importlib.util.find_spec(module) is None)
        return tuple(dict.fromkeys(absent))  # several modules may come with one package

    @property
    def cure(self) -> str:
        """The command that installs what is missing; empty if nothing is."""
        return f"pip install {shlex.join(self.missing)}" if self.missing else ""

    def obstacle(self, problem: str, batch: int = 1) -> str:
        """Why it cannot be run on the problem here, so many points at a time; empty if it can."""
        wanted = needs(problem) | ({"batches"} if batch > 1 else set())
        unable = wanted - self.handles
        return f"does not handle {', '.join(sorted(unable))}" if unable else self.cure

    def spend(self, objective: Objective, seed: int) -> None:
        """Search until the budget is used up."""
        try:
            self.search(objective, seed)
        except Spent:
            return

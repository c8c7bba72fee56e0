"""Every problem of the lab: the functions of `functions.py`, and the families of practical problems here.

A practical problem has a name with a comma, and one dimension; that of a mixed space is the number of its parameters.
"""

from cylbo.bench import functions
from cylbo.bench.coco import COCO_NAMES
from cylbo.bench.problems import crashes, engineering, mixed, noise
from cylbo.bench.problems.task import Family, Need, Point, Task

__all__ = ["NAMES", "Family", "Need", "Point", "Task", "check_problem", "exists", "needs", "packages", "task"]

FAMILIES = (engineering.FAMILY, noise.FAMILY, crashes.FAMILY, mixed.FAMILY)
PRACTICAL = {name: family for family in FAMILIES for name in family.dims}
NAMES: tuple[str, ...] = (*functions.PROBLEMS, *PRACTICAL)


def check_problem(name: str, dim: int) -> None:
    """Raises ValueError, with what is possible, unless `task(name, dim, ...)` exists. Makes nothing."""
    if name not in NAMES:
        known = ", ".join(repr(known) for known in NAMES if known not in COCO_NAMES)
        raise ValueError(
            f"problem must be one of {known}, 'bbob-f1' to 'bbob-f24', 'bbob-largescale-f1' to "
            f"'bbob-largescale-f24', got {name!r}."
        )
    if name in functions.PROBLEMS:
        functions.check_dimension(name, dim)
    elif not exists(name, dim):
        raise ValueError(f"{name} has {PRACTICAL[name].dims[name]} dimensions, got {dim}.")


def exists(name: str, dim: int) -> bool:
    """Whether a practical problem has that dimension; true of all functions, which are made for any."""
    return name not in PRACTICAL or PRACTICAL[name].dims[name] == dim


def needs(name: str) -> frozenset[Need]:
    """What a method must be able to do to be run on the problem."""
    return PRACTICAL[name].needs if name in PRACTICAL else frozenset()


def packages(name: str) -> tuple[str, ...]:
    """The pip names of what evaluations of a practical problem use."""
    return PRACTICAL[name].packages if name in PRACTICAL else ()


def task(name: str, dim: int, seed: int) -> Task:
    """The problem of that name; the seed of the run is also the number of the instance."""
    check_problem(name, dim)
    if name in PRACTICAL:
        return PRACTICAL[name].make(name, seed)
    function = functions.problem(name, dim, instance=seed)
    return Task(function, function.minimum)

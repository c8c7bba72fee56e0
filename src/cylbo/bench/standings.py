"""Who is first, level with the first or behind, over several problems."""

from collections.abc import Callable, Mapping

from cylbo.bench.figures import label
from cylbo.bench.markdown import escaped, table
from cylbo.bench.pages import in_order
from cylbo.bench.statistics import lowest_and_level
from cylbo.types import Array

__all__ = ["standings"]


def standings(losses: Mapping[str, Mapping[str, Array]], center: Callable[[Array], float]) -> list[str]:
    """A table from problem -> method -> losses of the runs; empty with fewer than two methods that can be compared."""
    counts: dict[str, list[int]] = {}
    for of_methods in losses.values():
        leaders = lowest_and_level(of_methods, center)
        compared = [m for m, runs in of_methods.items() if len(runs) > 1]
        for m in compared if len(compared) > 1 else ():
            place = 2 if m not in leaders else 1 if len(leaders) > 1 else 0
            counts.setdefault(m, [0, 0, 0])[place] += 1
    if not counts:
        return []
    return [
        "On how many problems a method is first (bold alone), level (bold with others) and behind, by the rule at the "
        "head of this page.",
        "",
        *table(
            ["method", "first", "level", "behind"],
            [[escaped(label(m)), *map(str, counts[m])] for m in in_order(counts)],
        ),
    ]

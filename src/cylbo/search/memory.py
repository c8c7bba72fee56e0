"""What the next suggestion begins from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cylbo.search.learn import Fits, State

__all__ = ["Memory"]


@dataclass(frozen=True, eq=False)
class Memory:
    """What the next suggestion begins from."""

    state: State = None  # of the objective
    limits: Mapping[str, Fits] = field(default_factory=dict)  # of what must be kept, see `search/feasibility.py`

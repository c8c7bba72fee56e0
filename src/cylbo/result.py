"""What a run found."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cylbo.geometry import Array
from cylbo.space import Space
from cylbo.tables import dataframe, write_csv, write_json
from cylbo.trial import Direction, Trial

__all__ = ["Result"]


@dataclass(frozen=True, eq=False)
class Result:
    """What came out, in the words of `scipy.optimize.OptimizeResult`."""

    x: Array | None  # (d,) best point, earlier evaluations included; None if nothing succeeded
    fun: float  # its value, or what the model expects there if values are noisy; NaN if nothing succeeded
    nfev: int  # evaluations made, failed ones included, earlier ones (`x0`, `y0`) not
    x_iters: Array  # (nfev, d) the points evaluated, in order
    func_vals: Array  # (nfev,) their values, NaN where an evaluation failed
    success: bool  # the budget was used up (or the callback stopped) and there is a best point
    message: str
    trials: list[Trial] = field(repr=False)  # everything, earlier evaluations first
    params: Mapping[str, Any] | None = None  # the best point by name; None in a box without names
    bounds: Space | Array = field(repr=False, kw_only=True)  # what was searched: a `cylbo.Space`, or (d, 2)
    direction: Direction = field(repr=False, kw_only=True)

    def to_dataframe(self) -> Any:  # noqa: ANN401 - of pandas, which may be missing
        """A `pandas.DataFrame` with a row per trial; the columns are explained in `tables.py`."""
        return dataframe(self.trials, self.bounds)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the same table as CSV; `cylbo.earlier` reads it. A file that is there is replaced as a whole."""
        write_csv(path, self.trials, self.bounds)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the same table as JSON, with the space and the direction; `cylbo.earlier` reads it."""
        write_json(path, self.trials, self.bounds, self.direction)

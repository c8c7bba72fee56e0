"""What a run found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cylbo.errors import NoResultError
from cylbo.record.trial import Trial
from cylbo.rendering import Rows, aligned, html_table, one_line, point_rows, shown
from cylbo.space.space import Space
from cylbo.store.table import dataframe, write_csv, write_json
from cylbo.types import Array, Direction

__all__ = ["Result", "without_best"]

# Trials below the best point in a notebook
LAST_SHOWN = 10
# Characters that are shown
LONGEST_MESSAGE = 160
LONGEST_REASON = 60


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What came out of a run, in the words of `scipy.optimize.OptimizeResult`.

    Attributes:
        x: The best point, an array of shape (d,), among all evaluations, earlier ones included.
            Where there is no best point, it raises `NoResultError`.
        params: The best point by name, a dict. It raises `NoResultError` where there is no best
            point, or where the parameters have no names.
        fun: The value at the best point. If values are noisy, it is what the model expects there;
            if there is no best point, it is NaN.
        nfev: The number of evaluations that were made. Failed ones count; earlier ones (`x0`, `y0`)
            do not.
        x_iters: The points that were evaluated, in order, an array of shape (nfev, d).
        func_vals: The values at these points, an array of shape (nfev,). It is NaN where an
            evaluation failed.
        success: Whether there is a best point and the run came to its end: the budget was used up,
            every point of a finite space was evaluated, or the callback stopped it.
        message: How the run ended, in words.
        trials: All trials as a list of `Trial`, earlier evaluations first.
        bounds: What was searched: a `cylbo.Space`, or an array of shape (d, 2) with a (low, high)
            per parameter.
        direction: "minimize" or "maximize".

    """

    # The best point, and its values by name. Both are None where there is no best point, and the
    # values are also None where parameters have no names
    _x: Array | None
    fun: float
    nfev: int
    x_iters: Array
    func_vals: Array
    success: bool
    message: str
    trials: list[Trial]
    _params: dict[str, Any] | None = None
    bounds: Space | Array = field(kw_only=True)
    direction: Direction = field(kw_only=True)

    @property
    def x(self) -> Array:
        """The best point (d,).

        Raises:
            NoResultError: no evaluation succeeded, or none kept every constraint.

        """
        if self._x is None:
            raise self._no_best_point()
        return self._x

    @property
    def params(self) -> dict[str, Any]:
        """The best point by name.

        Raises:
            NoResultError: no evaluation succeeded, none kept every constraint, or the parameters
                have no names.

        """
        if not isinstance(self.bounds, Space):
            raise NoResultError("this run has no named parameters; use result.x.")
        if self._params is None:
            raise self._no_best_point()
        return self._params

    def to_dataframe(self) -> Any:  # noqa: ANN401 - of pandas, which may be missing
        """A `pandas.DataFrame` with a row per trial; the columns are explained in `store/table.py`."""
        return dataframe(self.trials, self.bounds)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the same table as CSV; `cylbo.earlier` reads it. A file that is there is replaced as a whole."""
        write_csv(path, self.trials, self.bounds)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the same table as JSON, with the space and the direction; `cylbo.earlier` reads it."""
        write_json(path, self.trials, self.bounds, self.direction)

    def __repr__(self) -> str:
        name, rows = self._best_rows()
        return aligned([*self._facts(), (name, aligned(rows) if rows else self._none_found())])

    def _repr_html_(self) -> str:
        name, rows = self._best_rows()
        if rows:
            point = html_table(rows, caption=f"Best point: result.{name}")
            tables = [html_table(self._facts()), point]
        else:
            tables = [html_table([*self._facts(), (name, self._none_found())])]
        if last := self.trials[-LAST_SHOWN:]:
            head = ["id", "status", "value", "origin"]
            head += ["reason"] * any(trial.reason for trial in last)
            cells = [
                (
                    str(trial.id),
                    trial.status,
                    shown(trial.value) if trial.status == "done" else "",
                    one_line(trial.origin, LONGEST_REASON),
                    one_line(trial.reason, LONGEST_REASON),
                )[: len(head)]
                for trial in last
            ]
            caption = f"Last {len(last)} of {len(self.trials)} trials"
            tables.append(html_table(cells, head, caption))
        return f"<div>{''.join(tables)}</div>"

    def _best_rows(self) -> tuple[str, Rows]:
        """The attribute that holds the best point, and a row for each of its first parameters.

        There are no rows if there is no best point.
        """
        name, point = ("params", self._params) if isinstance(self.bounds, Space) else ("x", self._x)
        return name, [] if point is None else point_rows(point, f"result.{name}")

    def _none_found(self) -> str:
        return f"none; see result.trials for {without_best(self.trials)[1]}"

    def _facts(self) -> Rows:
        failed = int(np.isnan(self.func_vals).sum())
        rows = [
            ("message", one_line(self.message, LONGEST_MESSAGE)),
            ("fun", shown(self.fun)),
            ("evaluations", f"{self.nfev}, of which {failed} failed" if failed else str(self.nfev)),
        ]
        return [*rows, ("direction", self.direction)] if self.direction == "maximize" else rows

    def _no_best_point(self) -> NoResultError:
        why, detail = without_best(self.trials)
        return NoResultError(f"{why}, so there is no best point; see result.trials for {detail}.")


def without_best(trials: Sequence[Trial]) -> tuple[str, str]:
    """Why a run has no best point, and what its trials say about it."""
    if any(trial.status == "done" for trial in trials):
        return "no evaluation kept every constraint", "how far each was off"
    return "no evaluation succeeded", "what went wrong"

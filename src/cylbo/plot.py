"""Pictures of runs. Needs the extra `plot` (matplotlib), imported when a picture is asked for."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cylbo.record.trial import ELSEWHERE
from cylbo.run.optimizer import Optimizer
from cylbo.run.result import Result
from cylbo.types import Array, Direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["convergence"]

Run = Result | Optimizer | ArrayLike

INK, GRID = "#333333", "#e6e6e6"
# Okabe and Ito's colours, told apart by colour-blind readers as well. Seven markers and four line
# styles make 28 different looks without colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))

MARKERS = ("o", "^", "D", "v", "P", "*", "<")

# The height of a row of crosses, one for each run with failures, as a share of that of the axes
ROW = 0.03


class _Course(NamedTuple):
    """The course of a run of n evaluations.

    `values` (n,) are NaN where an evaluation failed. `allowed` (n,) says whether there is a value
    and every constraint is met. `best` (n + 1,) is the best allowed value after 0, ..., n
    evaluations, NaN before there is one.
    """

    values: Array
    allowed: NDArray[np.bool_]
    best: Array

    @property
    def failed(self) -> NDArray[np.bool_]:
        return np.isnan(self.values)

    def scaled(self, offset: float, sign: float) -> "_Course":
        return self._replace(values=sign * (self.values - offset), best=sign * (self.best - offset))


def convergence(
    *runs: Run | Mapping[str, Run],
    labels: Sequence[str] | None = None,
    direction: Direction | None = None,
    title: str = "",
    references: Mapping[str, float] | None = None,
    optimum: float | None = None,
    ax: "Axes | None" = None,
    path: str | os.PathLike[str] | None = None,
) -> "Axes":
    """Draw each value, and the best so far, against the number of evaluations.

    ```python
    cylbo.plot.convergence(result)
    cylbo.plot.convergence({"default": one, "paper": other}, path="runs.png")
    cylbo.plot.convergence(one, other, labels=["default", "paper"])
    ```

    Evaluations are counted in the order in which they were asked for. Open and cancelled trials
    are left out. Evaluations that were made elsewhere (`x0` with `y0`) are not counted; the best
    so far takes account of them from the place on where they stand among the trials, so that its
    curve begins at 0 evaluations. A value that breaks a constraint is a hollow square and
    never the best so far. Failed evaluations are crosses at the bottom.

    Args:
        runs: each a `Result`, an `Optimizer`, or (n,) values, NaN where an evaluation failed; or
            one dict of them by label.
        labels: one for each run.
        direction: of runs that are values; by default that of the other runs, or "minimize".
        title: stands above the picture.
        references: levels to draw across, by label.
        optimum: the best possible value. The axis is then the distance to it, on a log scale, and
            what lies at the optimum or beyond it is out of sight.
        ax: where to draw; by default a figure of its own, which pyplot keeps open.
        path: a file to save the figure in as well.

    Returns:
        The matplotlib Axes.

    Raises:
        ImportError: matplotlib is missing.
        TypeError: what came is no run.
        ValueError: values are not (n,), labels do not match, or directions differ.

    """
    named = _named(runs, labels)
    direction = _common_direction(named, direction)
    sign = -1.0 if direction == "maximize" else 1.0
    courses = [_course(run, label, sign) for label, run in named]
    pyplot = _pyplot()
    levels = dict(references or {})
    if optimum is not None:
        courses = [course.scaled(optimum, sign) for course in courses]
        levels = {label: sign * (level - optimum) for label, level in levels.items()}
    values = np.concatenate([np.concatenate([course.values, course.best]) for course in courses])
    longest = max(len(course.values) for course in courses)

    size = {"figsize": (7.2, 4.4), "layout": "constrained"}
    axes = pyplot.subplots(**size)[1] if ax is None else ax
    if optimum is not None and (values > 0.0).any():
        axes.set_yscale("log")
        levels = {label: level for label, level in levels.items() if level > 0.0}
    handles: list[Any] = []
    rows = 0
    for i, ((label, _), course) in enumerate(zip(named, courses, strict=True)):
        handles += _draw(axes, course, label, i, rows, alone=len(courses) == 1)
        rows += bool(course.failed.any())
    # The rows of failed evaluations stand below everything else
    axes.margins(y=0.05 + ROW * rows)
    _draw_levels(axes, levels, np.array([course.best[-1] for course in courses]))
    side = "below" if direction == "maximize" else "above"
    _finish(axes, longest, "value" if optimum is None else f"value {side} the optimum", title)
    if np.isnan(values).all():
        note = "no evaluation succeeded" if longest else "no evaluations"
        axes.text(0.5, 0.5, note, transform=axes.transAxes, ha="center", va="center", color=INK)
        axes.set_yticks([])
    if handles:
        _add_legend(axes, handles, several=len(courses) > 1, inside=ax is not None)
    if path is not None:
        # The figure of a subfigure is that of the whole
        axes.figure.figure.savefig(path, dpi=150)
    return axes


def _finish(axes: Any, longest: int, values: str, title: str) -> None:  # noqa: ANN401
    axes.set_xlim(0, longest + 1)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("evaluations")
    axes.set_ylabel(values)
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)


def _add_legend(
    axes: Any,  # noqa: ANN401
    handles: list[Any],
    *,
    several: bool,
    inside: bool,
) -> None:
    look: dict[str, Any] = {"handles": handles, "frameon": False, "fontsize": 9}
    if inside:
        axes.legend(**look)
    else:
        # Beside the axes it covers no data. Many entries need a column of their own.
        place = "outside right upper" if several else "outside lower center"
        axes.figure.legend(loc=place, ncols=1 if several else len(handles), **look)


def _draw(
    axes: Any,  # noqa: ANN401
    course: _Course,
    label: str,
    i: int,
    row: int,
    *,
    alone: bool,
) -> list[Any]:
    """Draw the i-th run and return what the legend shows of it."""
    colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
    failed, broken = course.failed, ~course.failed & ~course.allowed
    n = np.arange(1, len(course.values) + 1)
    begins = int(np.isnan(course.best).sum())
    of = "" if alone else f", {label}"
    handles: list[Any] = []
    if begins < len(course.best):
        look = {"color": colour, "linestyle": DASHES[i % len(DASHES)], "linewidth": 2.0}
        # The marker at the end shows a curve of a single point as well
        look |= {"marker": marker, "markersize": 5, "markevery": [-1], "zorder": 3}
        after = np.arange(begins, len(course.best))
        name = label or "best so far"
        handles += axes.step(after, course.best[begins:], where="post", label=name, **look)
    if course.allowed.any():
        x, y = n[course.allowed], course.values[course.allowed]
        look = {"s": 11, "marker": marker, "color": colour, "linewidths": 0, "zorder": 2}
        points = axes.scatter(x, y, label="each evaluation", alpha=0.6 if alone else 0.3, **look)
        handles += [points] if alone else []
    if broken.any():
        look = {"s": 16, "marker": "s", "facecolors": "none", "edgecolors": colour, "zorder": 4}
        name = f"{broken.sum()} breaking a constraint{of}"
        handles += [axes.scatter(n[broken], course.values[broken], label=name, **look)]
    if failed.any():
        height = np.full(failed.sum(), 0.02 + ROW * row)
        look = {"s": 22, "marker": "x", "color": colour, "linewidths": 1.1, "zorder": 4}
        look |= {"transform": axes.get_xaxis_transform(), "clip_on": False}
        handles += [axes.scatter(n[failed], height, label=f"{failed.sum()} failed{of}", **look)]
    return handles


def _draw_levels(axes: Any, levels: Mapping[str, float], ends: Array) -> None:  # noqa: ANN401
    """Draw levels with their labels at the right, away from where most curves end."""
    for label, level in levels.items():
        axes.axhline(level, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        over = (ends < level).sum() > (ends > level).sum()
        axes.annotate(
            label,
            (1.0, level),
            xycoords=("axes fraction", "data"),
            xytext=(-4, 2 if over else -2),
            textcoords="offset points",
            ha="right",
            va="bottom" if over else "top",
            fontsize=8.5,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
        )


def _named(runs: tuple[Any, ...], labels: Sequence[str] | None) -> list[tuple[str, Run]]:
    """The runs with their labels; a single one needs none."""
    if len(runs) == 1 and isinstance(runs[0], Mapping):
        if labels is not None:
            message = f"labels must be None with a dict of runs, got {labels!r}; use its keys."
            raise ValueError(message)
        labels, runs = list(runs[0]), tuple(runs[0].values())
    if not runs:
        raise ValueError("expected at least one run, got none; pass a Result, for example.")
    if labels is None:
        labels = [""] if len(runs) == 1 else [f"run {i}" for i in range(1, len(runs) + 1)]
    if isinstance(labels, str) or len(labels) != len(runs):
        raise ValueError(f"labels must be a list of {len(runs)}, one for each run, got {labels!r}.")
    return list(zip(map(str, labels), runs, strict=True))


def _common_direction(named: list[tuple[str, Run]], direction: Direction | None) -> Direction:
    """The one direction of all runs; plain values take that of the others."""
    if direction not in ("minimize", "maximize", None):
        raise ValueError(f"direction must be 'minimize', 'maximize' or None, got {direction!r}.")
    found = {run.direction for _, run in named if isinstance(run, Result | Optimizer)}
    found |= {direction} if direction else set()
    if len(found) > 1:
        raise ValueError(
            "expected runs of one direction, got some to minimize and some to maximize; "
            "draw them in pictures of their own."
        )
    return found.pop() if found else "minimize"


def _course(run: Run, label: str, sign: float) -> _Course:
    """What happened, in order; `sign` times a value is what is to be small."""
    if isinstance(run, Result | Optimizer):
        trials = [trial for trial in run.trials if trial.status in ("done", "failed")]
        value = np.array([trial.value for trial in trials], dtype=float)
        counted = np.array([trial.origin not in ELSEWHERE for trial in trials], dtype=bool)
        allowed = np.array([trial.feasible for trial in trials], dtype=bool)
    else:
        value = _checked_values(run, label)
        counted, allowed = np.ones(len(value), dtype=bool), ~np.isnan(value)
    best = sign * np.fmin.accumulate(np.where(allowed, sign * value, np.nan))
    # After k evaluations that count: the last trial before the next one that counts
    last = np.append(np.flatnonzero(counted), len(value))
    return _Course(value[counted], allowed[counted], np.concatenate([[np.nan], best])[last])


def _checked_values(run: ArrayLike, label: str) -> Array:
    """The values (n,) of a run, NaN where one is not finite."""
    expected = "expected a Result, an Optimizer or (n,) values"
    named = f" as {label!r}" if label else ""
    hint = "give a file with path=, several runs one by one or as a dict."
    try:
        values = np.asarray(run, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{expected}, got {run!r}{named}; {hint}") from error
    if values.ndim == 0:
        raise TypeError(f"{expected}, got {run!r}{named}; {hint}")
    if values.ndim > 1:
        raise ValueError(f"{expected}, got shape {values.shape}{named}; {hint}")
    return np.where(np.isfinite(values), values, np.nan)


def _pyplot() -> Any:  # noqa: ANN401 - a module without types
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'cylbo[plot]'") from error
    return pyplot

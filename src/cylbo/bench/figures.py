"""Pictures of the lab. Needs the extra `plot` (matplotlib), which is imported when a picture is asked for.

Every function returns a figure; `save` writes it. A method looks the same in all pictures of all reports. Panels are
given as problem -> method -> numbers, already in the order in which they are to be shown.
"""

import functools
import io
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec

import numpy as np

from cylbo.bench.methods import METHODS
from cylbo.bench.pages import in_order
from cylbo.bench.statistics import Comparison
from cylbo.bench.svg import compact
from cylbo.types import Array

__all__ = ["Style", "convergence", "efficiency", "label", "rank", "save", "scalability", "style"]

INK, GRID = "#333333", "#e6e6e6"
# Okabe and Ito's colours, told apart by colour-blind readers as well; instead of yellow, too pale for a line on white,
# a dark ochre and a grey; black and blue are for our own methods
COLOURS = ("#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C6D1F", "#7F7F7F")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h")  # as many as not to share a factor with COLOURS

PANEL, LONE_PANEL = (3.1, 2.55), (5.6, 3.4)  # inches
MAX_COLUMNS = 4
DPI = 120
LOOKS: dict[Any, Any] = {
    "font.size": 8.5,
    "figure.titlesize": 10.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8.5,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that every machine draws the same picture
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    # the grid tells where the ticks are
    "xtick.bottom": False,
    "ytick.left": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
    "svg.fonttype": "none",  # text as text: half the size
    "svg.hashsalt": "cylbo",  # the identifiers inside an SVG are random otherwise
}

MANY = 4  # methods; the bands of more would cover one another, and only those of our own are drawn
LEAST_RATIO, MOST_RATIO = 30.0, 1e9  # largest / smallest regret: from the first a log scale, which shows the second
TWO_POWERS = 100.0  # an axis whose ends have this ratio shows at least two powers of ten
SMALLEST_SECONDS = 1e-4  # what a log axis shows for less


P = ParamSpec("P")


class Style(NamedTuple):
    """How a method looks."""

    colour: str
    dashes: Any
    marker: str
    width: float
    ours: bool = False


OURS = {
    "default": Style("#000000", "-", "o", 2.6, ours=True),
    "paper": Style("#0072B2", "-", "s", 2.2, ours=True),
    "paper-w": Style("#0072B2", DASHES[1], "^", 1.5),
    "paper+b": Style("#0072B2", DASHES[2], "v", 1.5),
    "paper-p5": Style("#003F66", DASHES[1], "D", 1.5),
    "paper-p7": Style("#003F66", DASHES[2], "P", 1.5),
    "paper-p9": Style("#003F66", DASHES[3], "X", 1.5),
}


def style(method: str) -> Style:
    """The look of a method, from its place among all methods, whichever of them are drawn."""
    if method in OURS:
        return OURS[method]
    others = [name for name in METHODS if name not in OURS]
    i = others.index(method) if method in METHODS else zlib.crc32(method.encode())
    dashes = DASHES[i // len(COLOURS) % len(DASHES)]
    return Style(COLOURS[i % len(COLOURS)], dashes, MARKERS[i % len(MARKERS)], 1.2)


def label(method: str) -> str:
    """The method's label; its name if it is not one of ours, as in the file of another version."""
    return METHODS[method].label if method in METHODS else method


def _in_our_looks(draw: Callable[P, Any]) -> Callable[P, Any]:
    """The function with matplotlib's settings as ours while it runs, and the cure for a missing matplotlib."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401
        try:
            import matplotlib
        except ImportError as error:
            raise ImportError("plots need matplotlib: pip install 'cylbo[plot]'") from error
        with matplotlib.rc_context(LOOKS):
            return draw(*args, **kwargs)

    return drawn


@_in_our_looks
def convergence(
    panels: Mapping[str, Mapping[str, Sequence[Array]]],
    *,
    at: Sequence[int],
    title: str,
    above_minimum: Iterable[str],
) -> Any:  # noqa: ANN401
    """Median over seeds of the best so far, with the quartiles as a band.

    The panels hold one array (n,) per run, its numbers after `at` (n,) evaluations. For problems `above_minimum` they
    are distances to the minimum.
    """
    figure, axes = _panels(panels, title)
    methods = _methods(panels)
    known = set(above_minimum)
    for axis, (problem, curves) in zip(axes, panels.items(), strict=True):
        drawn = {m: np.quantile(runs, (0.25, 0.5, 0.75), axis=0) for m, runs in curves.items()}
        floor = _log_floor(drawn.values()) if problem in known else None
        for method, quartiles in drawn.items():
            look = style(method)
            low, middle, high = quartiles if floor is None else np.maximum(quartiles, floor)
            order = 4 if look.ours else 3
            axis.plot(
                at,
                middle,
                color=look.colour,
                linestyle=look.dashes,
                linewidth=look.width,
                marker=look.marker,
                markersize=3.5,
                markevery=_marks(len(at), methods.index(method), len(methods), 5 if len(panels) < 10 else 3),
                zorder=order,
            )
            if look.ours or len(methods) <= MANY:
                axis.fill_between(at, low, high, color=look.colour, alpha=0.13, linewidth=0, zorder=order - 2)
        if floor is not None:
            _log_scale(axis.yaxis)
        _name(axis, problem, "evaluations", "best above the minimum" if problem in known else "best value")
    _legend(figure, methods, lines=True)
    return figure


@_in_our_looks
def efficiency(
    panels: Mapping[str, Mapping[str, tuple[Array, Array]]], *, title: str, above_minimum: Iterable[str]
) -> Any:  # noqa: ANN401
    """What was reached against the seconds of suggesting, medians over seeds with the quartiles as error bars.

    The panels hold the seconds (runs,) and the losses (runs,) of each method.
    """
    figure, axes = _panels(panels, title)
    known = set(above_minimum)
    for axis, (problem, points) in zip(axes, panels.items(), strict=True):
        reached = {m: np.quantile(losses, (0.25, 0.5, 0.75)) for m, (_, losses) in points.items()}
        floor = _log_floor(reached.values()) if problem in known else None
        for method, (seconds, _) in points.items():
            look = style(method)
            x = np.quantile(np.maximum(seconds, SMALLEST_SECONDS), (0.25, 0.5, 0.75))
            y = reached[method] if floor is None else np.maximum(reached[method], floor)
            axis.errorbar(
                x[1],
                y[1],
                xerr=np.abs(x[[0, 2]] - x[1])[:, None],
                yerr=np.abs(y[[0, 2]] - y[1])[:, None],
                color=look.colour,
                marker=look.marker,
                markersize=8 if look.ours else 6,
                markeredgecolor="white",
                markeredgewidth=0.6,
                elinewidth=1.0,
                zorder=3 if look.ours else 4,  # large markers below small ones, which they would hide
            )
        _log_scale(axis.xaxis)
        if floor is not None:
            _log_scale(axis.yaxis)
        _name(
            axis,
            problem,
            "seconds of suggesting, per run",
            "best above the minimum" if problem in known else "best value",
        )
    _legend(figure, _methods(panels), lines=False)
    return figure


@_in_our_looks
def scalability(panels: Mapping[str, Mapping[str, Mapping[int, Array]]], *, title: str) -> Any:  # noqa: ANN401
    """Seconds of suggesting per run against the dimension, medians over seeds with the quartiles as error bars.

    The panels hold the seconds (runs,) of each method and dimension.
    """
    figure, axes = _panels(panels, title)
    dims = sorted({dim for lines in panels.values() for line in lines.values() for dim in line})
    for axis, (problem, lines) in zip(axes, panels.items(), strict=True):
        for method, line in lines.items():
            look = style(method)
            quartiles = np.array(
                [np.quantile(np.maximum(line[d], SMALLEST_SECONDS), (0.25, 0.5, 0.75)) for d in sorted(line)]
            )
            axis.errorbar(
                sorted(line),
                quartiles[:, 1],
                yerr=np.abs(quartiles[:, [0, 2]] - quartiles[:, [1]]).T,
                color=look.colour,
                linestyle=look.dashes,
                linewidth=look.width,
                marker=look.marker,
                markersize=5 if look.ours else 4,
                elinewidth=1.0,
                zorder=4 if look.ours else 3,
            )
        axis.set_xscale("log")
        _log_scale(axis.yaxis)
        axis.set_xticks(dims, labels=[str(d) for d in dims])
        axis.set_xticks([], minor=True)
        axis.set_xlim(dims[0] / 1.2, dims[-1] * 1.2)
        _name(axis, problem, "dimensions", "seconds of suggesting, per run")
    _legend(figure, _methods(panels), lines=True)
    return figure


@_in_our_looks
def rank(comparison: Comparison, *, title: str) -> Any:  # noqa: ANN401
    """The critical-difference diagram: methods at their average rank, a bar joins those that do not differ.

    Demsar 2006, Figure 1: the best is at the left. Without a significant Friedman test one bar joins all of them.
    """
    k, r = len(comparison.methods), comparison.mean_ranks
    bars = comparison.groups if comparison.significant else [(0, k - 1)]
    left_half = math.ceil(k / 2)
    first_label = 0.75 + 0.28 * len(bars)  # all in lines of text below the axis
    depth = first_label + left_half - 0.5
    figure = _figure((7.6, 1.25 + 0.24 * depth), title)
    axis = figure.add_subplot()
    axis.set_axis_off()
    margin = 0.42 * (k - 1)  # for the labels, in ranks
    axis.set_xlim(1 - margin, k + margin)
    axis.set_ylim(depth, -3.4)
    axis.plot([1, k], [0, 0], color=INK, linewidth=1.2, solid_capstyle="butt")
    for tick in _rank_ticks(k):
        axis.plot([tick, tick], [-0.25, 0], color=INK, linewidth=1.0)
        axis.text(tick, -0.4, str(tick), ha="center", va="bottom")
    shown = min(comparison.critical_difference, k - 1.0)
    axis.plot([1, 1 + shown], [-2.1, -2.1], color=INK, linewidth=1.6)
    for end in (1.0, 1 + shown) if shown == comparison.critical_difference else (1.0,):
        axis.plot([end, end], [-2.3, -1.9], color=INK, linewidth=1.2)
    more = "" if shown == comparison.critical_difference else ", wider than the axis"
    axis.text(1, -2.4, f"critical difference {comparison.critical_difference:.2f}{more}", ha="left", va="bottom")
    for i, method in enumerate(comparison.methods):
        left = i < left_half
        row = first_label + (i if left else k - 1 - i)
        edge = 1 - 0.04 * (k - 1) if left else k + 0.04 * (k - 1)
        look = style(method)
        axis.plot([r[i], r[i], edge], [0, row, row], color=look.colour, linewidth=max(1.0, look.width / 1.4))
        words = f"{_plain(label(method))}  {r[i]:.2f}" if left else f"{r[i]:.2f}  {_plain(label(method))}"
        axis.text(
            edge + (-0.012 if left else 0.012) * (k - 1),
            row,
            words,
            ha="right" if left else "left",
            va="center",
            fontweight="bold" if look.ours else "normal",
        )
    reach = 0.008 * (k - 1)
    for level, (first, last) in enumerate(bars):
        y = 0.42 + 0.28 * level
        axis.plot(
            [r[first] - reach, r[last] + reach], [y, y], color=INK, linewidth=3.0, solid_capstyle="butt", zorder=5
        )
    return figure


@_in_our_looks
def save(figure: Any, path: Path) -> None:  # noqa: ANN401
    """Write the picture as SVG; the same figure always gives the same bytes."""
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    path.write_text(compact(drawn.getvalue()), encoding="utf-8", newline="\n")


def _figure(size: tuple[float, float], title: str) -> Any:  # noqa: ANN401
    """An empty figure outside pyplot, so that nothing is shown and nothing is left open."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(_plain(title), x=0.01, ha="left")
    return figure


def _panels(panels: Mapping[str, Mapping[str, object]], title: str) -> tuple[Any, list[Any]]:
    """A figure with one axis per problem, and room for the legend at the right."""
    columns = _columns(len(panels))
    rows = math.ceil(len(panels) / columns)
    legend_height = 0.18 * len(_methods(panels)) + 0.8
    width, height = LONE_PANEL if len(panels) == 1 else PANEL
    figure = _figure((width * columns + 1.7, max(height * rows + 0.35, legend_height)), title)
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for unused in axes[len(panels) :]:
        unused.remove()
    return figure, axes[: len(panels)]


def _name(axis: Any, title: str, x: str, y: str) -> None:  # noqa: ANN401
    axis.set_title(_plain(title), loc="left")
    axis.set_xlabel(x)
    axis.set_ylabel(y)


def _log_scale(axis: Any) -> None:  # noqa: ANN401
    """Make the x- or y-axis logarithmic, at least a decade wide; one too short for powers of ten has 1, 2, 5 between.

    Matplotlib's own labels of a short axis, as 1.08 x 10^2, are wider than the room between them.
    """
    from matplotlib.ticker import FormatStrFormatter, FuncFormatter, LogLocator, NullLocator

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    margin = max(1.0, math.sqrt(10.0 * low / high))
    low, high = low / margin, high * margin
    axis.axes.set(**{f"{axis.axis_name}lim": (low, high)})
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda number, _: _power_of_ten(number)))
    if high / low < TWO_POWERS:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FormatStrFormatter("%g"))


def _power_of_ten(number: float) -> str:
    """10ⁿ in plain characters: as a formula it would be placed letter by letter."""
    return "10" + str(round(math.log10(number))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _columns(n: int) -> int:
    """Four problems make a square; more make rows of up to four."""
    return 2 if n == 4 else min(n, MAX_COLUMNS)


def _legend(figure: Any, methods: Sequence[str], *, lines: bool) -> None:  # noqa: ANN401
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            color=look.colour,
            linestyle=look.dashes if lines else "",
            linewidth=look.width,
            marker=look.marker,
            markersize=5,
        )
        for look in map(style, methods)
    ]
    figure.legend(
        handles,
        [_plain(label(m)) for m in methods],
        title=" ",  # keeps the legend below the line of the figure's title
        loc="outside right upper",
        frameon=False,
        handlelength=3.2 if lines else 1.0,
    )


def _methods(panels: Mapping[str, Mapping[str, object]]) -> list[str]:
    """The methods of all panels in the order of the lab."""
    return list(in_order(method for panel in panels.values() for method in panel))


def _plain(words: str) -> str:
    """The words as they stand: a dollar sign begins no formula."""
    return words.replace("$", r"\$")


def _log_floor(numbers: Iterable[Array]) -> float | None:
    """The smallest number to show if a log scale is worth it, else None.

    Smaller ones are drawn there: zero, less than zero by rounding or outside the box, and what would press the others
    together. A zero lies below whatever is positive, or it would look like the smallest of that.
    """
    pooled = np.concatenate([np.ravel(part) for part in numbers])
    positive = pooled[pooled > 0.0]
    if len(positive) == 0 or positive.max() < LEAST_RATIO * positive.min():
        return None
    smallest = positive.min() if (pooled > 0.0).all() else 0.1 * positive.min()
    return float(max(smallest, positive.max() / MOST_RATIO))


def _marks(n: int, index: int, count: int, places: int) -> list[int]:
    """Where the line of one of `count` methods is marked, shifted so that markers do not hide one another."""
    every = n / places
    return sorted({min(n - 1, int(every * (i + (index + 0.5) / count))) for i in range(places)})


def _rank_ticks(k: int) -> list[int]:
    step = 1 if k <= 12 else 2
    return sorted({*range(1, k + 1, step), k} - ({k - 1} if step == 2 else set()))

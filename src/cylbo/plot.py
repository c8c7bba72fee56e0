"""Pictures of a run. Needs the extra `plot` (matplotlib), which is imported when a picture is asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cylbo.geometry import Array

__all__ = ["convergence"]

# Okabe and Ito's colours, told apart by colour-blind readers as well
INK, GOOD, POINTS = "#333333", "#0072B2", "#999999"


def convergence(
    values: Sequence[float] | Array,  # (n,), NaN where an evaluation failed
    path: str | Path,
    *,
    title: str = "",
    references: dict[str, float] | None = None,
    optimum: float | None = None,
) -> Path:
    """Save a picture of each value and of the best so far against the number of evaluations; return its path.

    `references` are levels to draw across, by label. With `optimum` the axis is the distance to it, on a log scale.
    """
    plt = _pyplot()
    offset = 0.0 if optimum is None else optimum
    y = np.asarray(values, dtype=float) - offset
    n = np.arange(1, len(y) + 1)
    best = np.fmin.accumulate(y)
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    axes.scatter(n, y, s=9, color=POINTS, alpha=0.7, linewidths=0, label="each evaluation")
    axes.step(n, best, where="post", color=GOOD, linewidth=2.2, label="best so far")
    for label, level in (references or {}).items():
        axes.axhline(level - offset, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.annotate(
            label,
            (1.0, level - offset),
            xycoords=("axes fraction", "data"),
            xytext=(-4, -3),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=8.5,
            color=INK,
        )
    if optimum is not None:
        axes.set_yscale("log")
    axes.set_xlim(0, len(y) + 1)
    axes.set_xlabel("evaluations")
    axes.set_ylabel("value" if optimum is None else "value above the optimum")
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="upper right", fontsize=9)
    path = Path(path)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def _pyplot() -> Any:  # noqa: ANN401 - a module without types
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'cylbo[plot]'") from error
    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot

    return pyplot

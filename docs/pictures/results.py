"""Draw docs/pictures/results.svg: the best value so far on four shifted problems, ours beside its rivals.

python docs/pictures/results.py                           # draws what results.csv holds
python docs/pictures/results.py results.db   # takes the curves out of these runs first: those of commit c413b53

In 20 dimensions a curve is the median of five runs, each on another instance of the problem; the
band of the default holds the middle half. In 100 dimensions every method has the same one instance,
because the slow ones were run on no other, and a curve ends where a time limit stopped the run.
"""

import csv
import json
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

from cylbo.bench.functions import problem

HERE = Path(__file__).parent
TABLE = HERE / "results.csv"
COLUMNS = ("dim", "problem", "method", "evaluations", "low", "median", "high")
PROBLEMS = {
    "rosenbrock-shifted": "Rosenbrock, shifted",
    "hartmann6-rotated": "Hartmann6, rotated",
    "ackley-shifted": "Ackley, shifted",
    "levy-rotated": "Levy, rotated",
}
# Evaluations, seeds, and every how many evaluations a curve is kept
SIZES = {20: (200, 5, 5), 100: (600, 1, 15)}
# The label, the colour (Okabe and Ito's, which colour-blind readers can tell apart) and the line
METHODS: dict[str, tuple[str, str, Any]] = {
    "default": ("cylbo, default", "#000000", "-"),
    "turbo": ("TuRBO-1", "#D55E00", "-"),
    "optuna-gp": ("Optuna's GP", "#009E73", (0, (5, 1.6))),
    "paper": ("BOCK (cylbo, paper)", "#0072B2", (0, (5, 1.5, 1.2, 1.5))),
    "cma": ("CMA-ES", "#CC79A7", (0, (1.2, 1.2))),
}
QUARTILES = (0.25, 0.5, 0.75)
SHORT = 100.0
# The identifiers inside an SVG are random without a salt
LOOK: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "cylbo",
}


def extract(database: Path) -> None:
    """Write the regret of the best value so far, in the quartiles over the seeds, to the table."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    query = 'SELECT "values" FROM runs WHERE problem = ? AND dim = ? AND budget = ? AND method = ? AND seed = ?'
    with TABLE.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for dim, (budget, n_seeds, every) in SIZES.items():
            for name in PROBLEMS:
                for method in METHODS:
                    curves = []
                    for seed in range(n_seeds):
                        (text,) = connection.execute(query, (name, dim, budget, method, seed)).fetchone()
                        values = np.array(json.loads(text))
                        curves.append(np.minimum.accumulate(values) - problem(name, dim, seed).minimum)
                    quartiles = np.quantile(np.stack(curves), QUARTILES, axis=0)
                    length = quartiles.shape[1]
                    for n in [1, *range(every, length, every), length]:
                        numbers = (f"{number:.4g}" for number in quartiles[:, n - 1])
                        table.writerow((dim, name, method, n, *numbers))
    connection.close()


def draw() -> Figure:
    """Draw the table."""
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    figure = Figure(figsize=(10.4, 5.2), layout="constrained")
    axes = figure.subplots(len(SIZES), len(PROBLEMS))
    for i, (dim, (budget, n_seeds, _)) in enumerate(SIZES.items()):
        for j, (name, title) in enumerate(PROBLEMS.items()):
            axis = axes[i, j]
            for method, (label, colour, dashes) in METHODS.items():
                ours = method == "default"
                curve = [
                    [float(row[column]) for column in COLUMNS[3:]]
                    for row in rows
                    if (int(row["dim"]), row["problem"], row["method"]) == (dim, name, method)
                ]
                n, low, median, high = np.array(curve).T
                look = {"color": colour, "linestyle": dashes, "zorder": 4 if ours else 3}
                axis.plot(n, median, label=label, linewidth=2.4 if ours else 1.4, **look)
                # A circle where a time limit stopped the run
                if n[-1] < budget:
                    axis.plot(n[-1], median[-1], "o", markersize=4, color=colour, zorder=5)
                if ours and n_seeds > 1:
                    axis.fill_between(n, low, high, color=colour, alpha=0.13, linewidth=0)
            axis.set_yscale("log")
            # An axis too short for several powers of ten has 2 and 5 between them
            bottom, top = axis.get_ylim()
            if top / bottom < SHORT:
                axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axis.yaxis.set_major_formatter(FormatStrFormatter("%g"))
            axis.yaxis.set_minor_locator(NullLocator())
            axis.set_xlim(0, budget)
            axis.grid(axis="y", color="#e6e6e6", linewidth=0.7)
            axis.set_title(title if i == 0 else "", loc="left")
            if j == 0:
                axis.set_ylabel(f"{dim} dimensions\nbest value above the minimum")
            if i == len(SIZES) - 1:
                axis.set_xlabel("evaluations")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(METHODS), frameon=False)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write an SVG; a tenth of a point is as fine as a screen shows."""
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    path.write_text(re.sub(r"(\d+\.\d)\d+", r"\1", path.read_text()))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        extract(Path(sys.argv[1]))
    with mpl.rc_context(LOOK):
        save(draw(), HERE / "results.svg")

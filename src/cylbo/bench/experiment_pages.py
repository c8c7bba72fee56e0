"""The pages of the experiments: words, tables and a picture of each."""

from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np

from cylbo.bench import figures
from cylbo.bench.experiments import Experiment
from cylbo.bench.record import Record, evaluations_of_points
from cylbo.bench.statistics import LEVEL_RULE
from cylbo.types import Array

__all__ = ["write_experiments"]

TITLES = {
    "engineering": "Problems that nothing was tuned on",
    "practical": "Noise, crashes and mixed spaces",
    "batches": "Several points at a time",
}
HOW_TO_READ = (
    "Lower is better; regret is the best value minus the known minimum. Seconds and minutes are those of one "
    "processor core spent suggesting, without the evaluations. † marks runs stopped at the time limit, with "
    f"the mean evaluations they reached. {LEVEL_RULE} Pictures show the median over seeds; the band holds the middle "
    "half of them. Machines, versions and commands stand in [the index](README.md)."
)


def write_experiments(shown: Sequence[tuple[Experiment, Sequence[Record]]], folder: Path) -> list[Path]:
    """Write a page for each group of experiments that has records, and its pictures; return the paths."""
    paths: list[Path] = []
    for name, title in TITLES.items():
        lines = [f"# {title}", "", HOW_TO_READ]
        of_page = [(experiment, its) for experiment, its in shown if experiment.page == name]
        for experiment, its in of_page:
            picture = folder / f"practical-{experiment.name}.svg"
            lines += _section(experiment, its, picture)
            paths.append(picture)
        if of_page:
            paths.append(folder / f"{name}.md")
            paths[-1].write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return paths


def _section(experiment: Experiment, records: Sequence[Record], picture: Path) -> list[str]:
    cells = experiment.cells(records)
    budget = records[0].key.budget
    panels: dict[str, dict[str, list[Array]]] = {
        p: {m: [np.array(run.curve) for run in runs] for m, runs in row.items()} for p, row in cells.items()
    }
    for problem, row in panels.items():
        if any(run.minimum is None for runs in cells[problem].values() for run in runs):
            lowest = min(curve[-1] for curves in row.values() for curve in curves)
            panels[problem] = {m: [curve - lowest for curve in curves] for m, curves in row.items()}
    # By name the lab might choose the same look for two; the looks of other pictures stay as they are
    with mock.patch.dict(figures.OURS, experiment.looks):
        drawn = figures.convergence(
            panels, at=evaluations_of_points(budget), title=experiment.title, above_minimum=experiment.problems
        )
    figures.save(drawn, picture)
    heading = f"## {experiment.title}: {budget} evaluations"
    link = f"![{experiment.title}]({picture.name})"
    return ["", heading, "", experiment.about, "", *experiment.lines(cells), "", link]

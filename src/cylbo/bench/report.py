"""Tables and pictures of the lab: a folder of Markdown, one page per suite and an index.

All of it comes from the table of runs, and the same table gives the same bytes. Whatever depends on the clock stands
in the section "Seconds" of a page, and what depends on the machine in the index.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from cylbo.bench import figures
from cylbo.bench.experiment_pages import write_experiments
from cylbo.bench.experiments import EXPERIMENTS
from cylbo.bench.index import index
from cylbo.bench.markdown import escaped
from cylbo.bench.pages import convergence_panels, efficiency_panels, page_of, scalability_panels
from cylbo.bench.record import Record, evaluations_of_points
from cylbo.bench.sections import (
    evaluations_section,
    first_section,
    how_to_read,
    loss_section,
    paper_section,
    rank_section,
    rosenbrock_section,
    seconds_section,
)
from cylbo.bench.suites import Suite

__all__ = ["write_report"]

CONVERGENCE = (
    "Best so far: median over seeds; the band holds the middle half of them (with many methods only ours have one). "
    "A run stopped early keeps its best to the end."
)
SECONDS = (
    "Only this section depends on the clock. Counted is what a method needs to suggest a point, from the return of one "
    "evaluation to the call of the next; the cost of the function itself is not in it."
)


def write_report(records: Sequence[Record], folder: Path, suites: Iterable[Suite]) -> list[Path]:
    """Write README.md, a page per suite and experiment that has runs, and its pictures; return the paths."""
    if not records:
        raise ValueError("a report needs at least one run, got none; make some with `cylbo bench run SUITE`.")
    folder.mkdir(parents=True, exist_ok=True)
    records = sorted(records, key=lambda record: record.order)
    paths: list[Path] = []
    shown: list[tuple[Suite, list[Record]]] = []
    suites = list(suites)
    for suite in suites:
        of_suite = [run for run in records if run.batch == 1 and _belongs(run, suite, suites)]
        if of_suite:
            shown.append((suite, of_suite))
            paths += _write_suite(suite, of_suite, folder)
    experiments = [(each, its) for each in EXPERIMENTS if (its := each.its(records))]
    paths += write_experiments(experiments, folder)
    readme = folder / "README.md"
    readme.write_text(index(records, shown, experiments), encoding="utf-8", newline="\n")
    return [readme, *paths]


def _belongs(run: Record, suite: Suite, suites: Sequence[Suite]) -> bool:
    """An open suite shows all methods, and other dimensions and budgets too unless they are those of another suite."""
    problem, dim, budget, method, *_ = run.key
    own = {each.name for each in suites if problem in each.problems and each.budgets.get(dim) == budget}
    if suite.open:
        return problem in suite.problems and (not own or suite.name in own)
    return suite.name in own and method in suite.methods


def _write_suite(suite: Suite, runs: Sequence[Record], folder: Path) -> list[Path]:
    sizes = sorted({(run.key.dim, run.key.budget) for run in runs})
    pages = [
        page_of(suite, dim, budget, [run for run in runs if (run.key.dim, run.key.budget) == (dim, budget)])
        for dim, budget in sizes
    ]
    pictures: list[Path] = []

    def picture(figure: object, name: str, caption: str) -> str:
        pictures.append(folder / f"{suite.name}-{name}.svg")
        figures.save(figure, pictures[-1])
        return f"![{caption}]({pictures[-1].name})"

    lines = [f"# {escaped(suite.title)}", "", escaped(suite.description)]
    if not suite.timing:
        lines += ["", how_to_read(suite)]
    for page in [] if suite.timing else pages:
        lines += ["", f"## {page.dim} dimensions, {page.budget} evaluations", *loss_section(page)]
        lines += first_section(page)
        lines += rosenbrock_section(page)
        lines += paper_section(page)
        lines += evaluations_section(page)
        comparison, section = rank_section(page)
        lines += section
        if comparison is not None:
            figure = figures.rank(comparison, title=f"{page.title}: average rank")
            lines += ["", picture(figure, f"rank-{page.size}", "Critical-difference diagram")]
        curves, known = convergence_panels(page)
        if curves:
            figure = figures.convergence(
                curves, at=evaluations_of_points(page.budget), title=page.title, above_minimum=known
            )
            caption = picture(figure, f"convergence-{page.size}", "Convergence")
            lines += ["", "### Convergence", "", CONVERGENCE, "", caption]
    lines += ["", "## Seconds", "", SECONDS]
    for page in pages:
        lines += seconds_section(page)
        points, known = efficiency_panels(page)
        if suite.timing and len(suite.budgets) == 1 and points:
            figure = figures.efficiency(points, title=page.title, above_minimum=known)
            lines += ["", picture(figure, f"efficiency-{page.size}", "What was reached against seconds")]
    growth = scalability_panels(pages)
    if suite.timing and growth:
        lines += [
            "",
            "Runs that were stopped at the time limit are not in the picture.",
            "",
            picture(figures.scalability(growth, title=suite.title), "scalability", "Seconds against dimension"),
        ]
    path = folder / f"{suite.name}.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return [path, *pictures]

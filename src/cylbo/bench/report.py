"""Tables and pictures of the lab: a folder of Markdown, one page per suite and an index.

The same runs give the same bytes. Whatever depends on the clock stands in the section "Seconds" of a page, and what
depends on the machine in the index.
"""

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from cylbo.bench import figures, functions
from cylbo.bench.commands import commands
from cylbo.bench.figures import label
from cylbo.bench.markdown import escaped, table
from cylbo.bench.methods import METHODS
from cylbo.bench.pages import (
    Minimum,
    convergence_panels,
    efficiency_panels,
    in_order,
    page_of,
    scalability_panels,
)
from cylbo.bench.sections import (
    evaluations_section,
    how_to_read,
    loss_section,
    paper_section,
    rank_section,
    rosenbrock_section,
    seconds_section,
)
from cylbo.bench.store import Run
from cylbo.bench.suites import Suite

__all__ = ["known_minimum", "write_report"]

CONVERGENCE = (
    "Best so far: median over seeds; the band holds the middle half of them (with many methods only ours have one). "
    "A run stopped early keeps its best to the end."
)
SECONDS = (
    "Only this section depends on the clock. Counted is what a method needs to suggest a point, from the return of one "
    "evaluation to the call of the next; the cost of the function itself is not in it."
)
COMMANDS = (
    "They make all runs of this file, with every seed up to the highest. A time limit stands where it stopped runs "
    "(the largest if there were several) or where a run took longer than the usual one."
)


def write_report(
    runs: Sequence[Run],
    folder: Path,
    suites: Iterable[Suite],
    skipped: Mapping[str, str] | None = None,
    *,
    minimum: Minimum | None = None,
) -> list[Path]:
    """Write README.md, a page per suite that has runs and its pictures; return the paths.

    `skipped` are the methods that could not be run, with the command that installs what they lack.
    """
    if not runs:
        raise ValueError("a report needs at least one run, got none; make some with `cylbo bench run SUITE`.")
    minimum = cache(known_minimum if minimum is None else minimum)
    folder.mkdir(parents=True, exist_ok=True)
    runs = sorted(runs, key=lambda run: run.key)
    paths: list[Path] = []
    shown: list[tuple[Suite, list[Run]]] = []
    suites = list(suites)
    for suite in suites:
        of_suite = [run for run in runs if _belongs(run, suite, suites)]
        if of_suite:
            shown.append((suite, of_suite))
            paths += _write_suite(suite, of_suite, folder, minimum)
    readme = folder / "README.md"
    readme.write_text(_index(runs, shown, skipped or {}), encoding="utf-8", newline="\n")
    return [readme, *paths]


def known_minimum(problem: str, dim: int, seed: int) -> float | None:
    """The minimum of that instance; None if it is not known or the package of the problem is not installed."""
    try:
        return functions.problem(problem, dim, instance=seed).minimum
    except ImportError:
        return None


def _belongs(run: Run, suite: Suite, suites: Sequence[Suite]) -> bool:
    """An open suite shows all methods, and other dimensions and budgets too unless they are those of another suite."""
    problem, dim, budget, method, *_ = run.key
    own = {each.name for each in suites if problem in each.problems and each.budgets.get(dim) == budget}
    if suite.open:
        return problem in suite.problems and (not own or suite.name in own)
    return suite.name in own and method in suite.methods


def _write_suite(suite: Suite, runs: Sequence[Run], folder: Path, minimum: Minimum) -> list[Path]:
    sizes = sorted({(run.key.dim, run.key.budget) for run in runs})
    pages = [
        page_of(suite, dim, budget, [run for run in runs if (run.key.dim, run.key.budget) == (dim, budget)], minimum)
        for dim, budget in sizes
    ]
    pictures: list[Path] = []

    def picture(figure: object, name: str, caption: str) -> str:
        svg, png = figures.save(figure, folder / f"{suite.name}-{name}")
        pictures.extend((svg, png))
        return f"![{caption}]({svg.name})"

    lines = [f"# {escaped(suite.title)}", "", escaped(suite.description)]
    if not suite.timing:
        lines += ["", how_to_read(suite)]
    for page in [] if suite.timing else pages:
        lines += ["", f"## {page.dim} dimensions, {page.budget} evaluations", *loss_section(page)]
        lines += rosenbrock_section(page)
        lines += paper_section(page)
        lines += evaluations_section(page)
        comparison, section = rank_section(page)
        lines += section
        if comparison is not None:
            figure = figures.rank(comparison, title=f"{page.title}: average rank")
            lines += ["", picture(figure, f"rank-{page.size}", "Critical-difference diagram")]
        curves, known = convergence_panels(page, minimum)
        if curves:
            figure = figures.convergence(curves, title=page.title, above_minimum=known)
            caption = picture(figure, f"convergence-{page.size}", "Convergence")
            lines += ["", "### Convergence", "", CONVERGENCE, "", caption]
    lines += ["", "## Seconds", "", SECONDS]
    for page in pages:
        lines += seconds_section(page)
        points, known = efficiency_panels(page, minimum)
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


def _index(runs: Sequence[Run], shown: Sequence[tuple[Suite, Sequence[Run]]], skipped: Mapping[str, str]) -> str:
    status = Counter(run.status for run in runs)
    lines = [
        "# Report of the lab",
        "",
        f"{len(runs)} runs: {status['finished']} finished, {status['timeout']} stopped at the time limit, "
        f"{status['failed']} failed.",
        "",
        "## Suites",
        "",
        *table(
            ["suite", "what", "runs", "dimensions", "seeds"],
            [
                [
                    f"[{escaped(suite.title)}]({suite.name}.md)",
                    escaped(suite.description),
                    str(len(of_suite)),
                    ", ".join(map(str, sorted({run.key.dim for run in of_suite}))),
                    str(len({run.key.seed for run in of_suite})),
                ]
                for suite, of_suite in shown
            ],
            words=2,
        ),
    ]
    keys = {run.key for _, of_suite in shown for run in of_suite}
    elsewhere = [run for run in runs if run.key not in keys]
    if elsewhere:
        places = sorted({(run.key.problem, run.key.dim, run.key.budget) for run in elsewhere})
        named = ", ".join(f"{escaped(p)} ({dim} dimensions, {budget} evaluations)" for p, dim, budget in places)
        lines += ["", f"{len(elsewhere)} runs belong to no suite and are in no table: {named}."]
    methods = in_order(run.key.method for run in runs)
    lines += [
        "",
        "## Methods",
        "",
        *table(
            ["method", "name", "source", "runs"],
            [
                [
                    escaped(label(m)),
                    escaped(m),
                    escaped(METHODS[m].source) if m in METHODS else "not known to this version",
                    str(sum(run.key.method == m for run in runs)),
                ]
                for m in methods
            ],
            words=3,
        ),
    ]
    if skipped:
        lines += ["", "Skipped, for a package is missing:", ""]
        lines += [f"- {escaped(label(m))}: {escaped(skipped[m])}" for m in in_order(skipped)]
    lines += ["", "## Machines", *_machines(runs)]
    lines += ["", "## Commands", "", COMMANDS, "", "```", *commands(shown), "cylbo bench report results.db", "```"]
    failed = [run for run in runs if run.status == "failed"]
    if failed:
        lines += ["", "## Failed runs"]
        for run in sorted(failed, key=lambda run: methods.index(run.key.method)):
            lines += _failure(run)
    return "\n".join(lines) + "\n"


def _machines(runs: Sequence[Run]) -> list[str]:
    """Where the runs were made and with which versions; every run names only the packages that it used."""
    places = Counter(
        tuple(str(run.environment.get(name, "unknown")) for name in ("machine", "cores", "threads", "python"))
        for run in runs
    )
    versions: dict[str, set[str]] = {}
    for run in runs:
        for package, version in run.environment.get("versions", {}).items():
            versions.setdefault(package, set()).add(str(version))
    limits = sorted({run.time_limit for run in runs if run.time_limit > 0.0})
    lines = [
        "",
        *table(
            ["machine", "cores", "threads per run", "Python", "runs"],
            [[*map(escaped, place), str(count)] for place, count in sorted(places.items())],
        ),
    ]
    if versions:
        named = "; ".join(
            f"{escaped(name)} {escaped(' and '.join(sorted(found)))}" for name, found in sorted(versions.items())
        )
        lines += ["", f"Versions: {named}."]
    if limits:
        lines += ["", f"Time limit of a run, in seconds: {', '.join(f'{limit:g}' for limit in limits)}."]
    return lines


def _failure(run: Run) -> list[str]:
    """A failed run by the last line of its traceback, which unfolds to all of it."""
    problem, dim, _, method, seed, _ = run.key
    words = run.error.strip().splitlines() or ["no message"]
    summary = f"{label(method)} on {problem}, {dim} dimensions, seed {seed}: {words[-1].strip()}"
    # The blank line begins a block of its own for <pre>, which then may hold blank lines itself (CommonMark, Sec. 4.6)
    return [
        "",
        f"<details><summary>{html.escape(summary)}</summary>",
        "",
        "<pre>",
        *(html.escape(line) for line in words),
        "</pre>",
        "</details>",
    ]

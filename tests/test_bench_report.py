"""The report of the lab: numbers computed by hand, what is marked and escaped, and that it repeats."""

from dataclasses import replace

import numpy as np
import pytest

from cylbo.bench import figures, functions
from cylbo.bench.methods import METHODS
from cylbo.bench.pages import Cell, late_seconds, page_of, scalability_panels
from cylbo.bench.published import COUNTERPARTS, PUBLISHED, counterpart, published
from cylbo.bench.record import known_minimum, recorded
from cylbo.bench.report import write_report
from cylbo.bench.store import Key, Run
from cylbo.bench.suites import SUITES, Suite

pytest.importorskip("matplotlib")

BUDGET = 200
TABLE1 = Suite("table1", "Table 1", "Some runs.", ("branin", "levy"), {20: BUDGET}, ("paper", "sobol"), open=True)
SHIFTED = Suite(
    "shifted", "Shifted", "Other runs.", ("levy-shifted",), {20: BUDGET}, ("paper", "sobol"), open=True, regret=True
)
ENVIRONMENT = {
    "versions": {"numpy": "2.0|1", "cylbo": "1.0"},
    "cores": 8,
    "threads": 1,
    "machine": "Linux <x86_64>",
    "python": "3.11.9",
}


@pytest.fixture
def saved_pictures():
    """Asked for by tests that look at the files of pictures."""


@pytest.fixture(autouse=True)
def _quick_pictures(request, monkeypatch):
    """Draw, but write empty files: to lay out and save a picture takes most of the time of a report."""
    if "saved_pictures" in request.fixturenames:
        return

    monkeypatch.setattr(figures, "save", lambda _figure, path: path.touch())


def report(runs, folder, suites, minimum=lambda *_: 0.0):
    """The paths of the report of these runs of a store."""
    return write_report([recorded(made, minimum) for made in runs], folder, suites)


def run(problem, method, seed, best, *, status="finished", evaluations=BUDGET, error="", cost=0.5, dim=20):
    values = np.linspace(best + 5.0, best, evaluations)
    key = Key(problem, dim, BUDGET, method, seed)
    return Run(key, status, values, np.full(evaluations, cost), error, 1800.0, ENVIRONMENT)


def complete(**options):
    """Two methods on two problems with two seeds: paper has 1 and 3, sobol 4 and 8."""
    return [
        run(problem, method, seed, best, **options)
        for problem in ("branin", "levy")
        for method, bests in (("sobol", (4.0, 8.0)), ("paper", (1.0, 3.0)))
        for seed, best in enumerate(bests)
    ]


def page(tmp_path, runs, suite=TABLE1, minimum=lambda *_: 0.0, name=None):
    report(runs, tmp_path, [suite], minimum)
    return (tmp_path / (name or f"{suite.name}.md")).read_text(encoding="utf-8")


def row(text, start, nth=0):
    """The cells of the nth table row that begins with this cell."""
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:1] == "|"]
    return [cells for cells in rows if cells[0] == start][nth]


def section(text, title):
    return text.split(title, 1)[1].split("\n#", 1)[0]


# ---- the paper's numbers ----


@pytest.mark.parametrize(
    ("row_name", "problem", "dim", "mean", "sd"),
    [
        ("SMAC", "rosenbrock", 100, 8593.09, 18.80),
        ("TPE", "branin", 20, 7.59, 1.20),
        ("Spearmint", "hartmann6", 100, -2.55, 0.19),
        ("Spearmint+", "rosenbrock", 20, 5909.63, 2725.76),
        ("Additive BO", "branin", 100, 14.07, 0.84),
        ("Elastic BO", "levy", 20, 1.35, 0.34),
        ("Matern", "levy", 100, 2.17, 0.18),
        ("BOCK", "rosenbrock", 20, 47.87, 33.94),
        ("BOCK", "rosenbrock", 50, 29.65, 11.56),
        ("BOCK-W", "rosenbrock", 20, 1314.03, 1619.73),
        ("BOCK+B", "rosenbrock", 100, 87.00, 36.88),
    ],
)
def test_cells_read_from_the_papers_tables(row_name, problem, dim, mean, sd):
    assert published(row_name, problem, dim, {20: 200, 50: 400, 100: 600}[dim]) == (mean, sd)


def test_no_published_mean_is_below_the_minimum_or_has_a_negative_deviation():
    minima = {"branin": 0.3979, "hartmann6": -3.3223, "rosenbrock": 0.0, "levy": 0.0}
    for cells in PUBLISHED.values():
        for (problem, _), (mean, sd) in cells.items():
            assert mean > minima[problem]
            assert sd >= 0.0


def test_the_paper_has_no_number_for_another_budget_or_method():
    assert counterpart("paper", "levy", 20, 200) == (0.54, 0.13)
    assert counterpart("paper", "levy", 20, 100) is None
    assert counterpart("sobol", "levy", 20, 200) is None
    assert published("Elastic BO", "levy", 100, 600) is None
    assert set(COUNTERPARTS.values()) | {"Additive BO"} == set(PUBLISHED)


# ---- tables ----


def test_mean_and_population_deviation_stand_beside_the_papers_with_the_best_and_what_is_level_in_bold(tmp_path):
    text = page(tmp_path, complete())
    assert row(text, "method") == ["method", "seeds", "branin", "paper", "levy", "paper"]
    assert row(text, "BOCK") == ["BOCK", "2", "**2.00 ± 1.00**", "0.50 ± 0.12", "**2.00 ± 1.00**", "0.54 ± 0.13"]
    # 6 - 2 = 4 is less than two standard errors, 2 sqrt(2 / 2 + 8 / 2), so Sobol is level
    assert row(text, "Sobol") == ["Sobol", "2", "**6.00 ± 2.00**", "–", "**6.00 ± 2.00**", "–"]


def test_methods_stand_in_the_order_of_the_lab_and_unknown_ones_last_by_name(tmp_path):
    text = page(tmp_path, [run("levy", m, 0, 1.0) for m in ("zebra", "sobol", "aardvark", "matern", "default")])
    first = [line.split(" | ")[0][2:] for line in text.splitlines() if line[:1] == "|"][2:7]
    assert first == ["cylbo", "Matern", "Sobol", "aardvark", "zebra"]


def test_a_method_is_first_where_nothing_is_level_and_one_run_is_not_compared(tmp_path):
    """On Levy 10 and 10.2 are 9.1 above 1: behind; on Branin 1.1 and 1.3 are level with 1 and 1.2."""
    bests = {
        ("levy", "paper"): (0.9, 1.1),
        ("levy", "sobol"): (10.0, 10.2),
        ("branin", "paper"): (1.0, 1.2),
        ("branin", "sobol"): (1.1, 1.3),
        ("levy", "cma"): (0.0,),
    }
    runs = [run(*key, seed, best) for key, of_seeds in bests.items() for seed, best in enumerate(of_seeds)]
    text = page(tmp_path, runs)
    standings = section(text, "### First or level")
    assert row(standings, "BOCK") == ["BOCK", "1", "1", "0"]
    assert row(standings, "Sobol") == ["Sobol", "0", "1", "1"]
    assert "CMA-ES" not in standings
    assert row(text, "CMA-ES")[4] == "0.00 ± 0.00"
    assert "no more than two standard errors" in text.split("\n## ")[0]


def test_the_gap_is_in_units_of_the_papers_deviation(tmp_path):
    gaps = section(page(tmp_path, complete()), "### Gap to the paper")
    assert row(gaps, "BOCK") == ["BOCK", f"{(2.00 - 0.50) / 0.12:+.1f} sd", f"{(2.00 - 0.54) / 0.13:+.1f} sd"]
    assert "Sobol" not in gaps


def test_without_a_deviation_in_the_paper_the_gap_is_the_difference(tmp_path):
    gaps = section(page(tmp_path, [run("branin", "matern", 0, 0.51)]), "### Gap to the paper")
    assert row(gaps, "Matern") == ["Matern", "+0.10"]


def test_rosenbrock_is_also_told_as_the_plain_sum_of_squares(tmp_path):
    """At the centre of [-5, 10]^20, x = 2.5, each of the 19 terms is 100 (2.5 - 6.25)^2 + 1.5^2 = 1408.5."""
    centre = float(functions.rosenbrock(np.zeros(20)))
    suite = replace(TABLE1, problems=("levy", "rosenbrock"))
    runs = [run("rosenbrock", "sobol", seed, centre) for seed in range(2)]
    runs += [run("rosenbrock", "paper", seed, share * centre) for seed, share in enumerate((0.4, 0.6))]
    runs += [run("levy", "matern", 0, 1.0), run("rosenbrock", "tpe", 0, centre, status="timeout", evaluations=50)]
    text = section(page(tmp_path, runs, suite), "### Rosenbrock in its own units")
    assert row(text, "method") == ["method", "rosenbrock"]
    assert row(text, "Sobol") == ["Sobol", f"{19 * 1408.5:.2f} ± 0.00"]
    assert row(text, "BOCK") == ["BOCK", f"**{19 * 1408.5 / 2:.2f} ± {19 * 1408.5 / 10:.2f}**"]
    assert row(text, "TPE") == ["TPE", f"{19 * 1408.5:.2f} ± 0.00 †50"]
    assert row(text, "Matern") == ["Matern", "–"]
    assert "the plain sum of squares, which is the best value divided by 0.3217." in text


def test_rosenbrock_has_own_units_in_every_dimension_and_not_among_regrets(tmp_path):
    suite = replace(TABLE1, problems=("rosenbrock",), budgets={20: BUDGET, 50: BUDGET})
    runs = [run("rosenbrock", "paper", 0, 1.0, dim=dim) for dim in (20, 50)]
    text = page(tmp_path, runs, suite)
    assert text.count("### Rosenbrock in its own units") == 2
    # 1 / (50000 / (8181 (d - 1)))
    assert [row(text, "BOCK", nth)[-1] for nth in (1, 5)] == ["3.11 ± 0.00", "8.02 ± 0.00"]
    assert "own units" not in page(tmp_path, runs, replace(suite, regret=True))
    assert "own units" not in page(tmp_path, complete())


def test_a_stopped_run_counts_and_is_marked_with_its_evaluations(tmp_path):
    runs = [run("branin", "paper", 0, 1.0), run("branin", "paper", 1, 3.0, status="timeout", evaluations=50)]
    text = page(tmp_path, runs)
    assert row(text, "BOCK")[2] == "**2.00 ± 1.00** †50"
    assert row(section(text, "### Gap to the paper"), "BOCK")[1].endswith(" sd †50")
    assert row(section(text, "### Evaluations"), "BOCK") == ["BOCK", "1", "1", "0", "125 (least 50)"]


def test_a_failed_run_is_counted_and_in_no_mean(tmp_path):
    text = page(tmp_path, [*complete(), run("levy", "paper", 2, -100.0, status="failed", evaluations=9, error="oh")])
    assert row(text, "BOCK")[4] == "**2.00 ± 1.00**"
    assert row(section(text, "### Evaluations"), "BOCK") == ["BOCK", "4", "0", "1", "200"]


def test_seeds_that_differ_between_problems_are_told(tmp_path):
    text = page(tmp_path, complete()[:-1])
    assert row(text, "BOCK")[1] == "1–2"
    assert "With fewer seeds than others on some problem: BOCK." in text


def test_runs_without_any_value_leave_an_empty_cell(tmp_path):
    stopped = run("levy", "paper", 0, 1.0, status="timeout", evaluations=0)
    text = page(tmp_path, [stopped, run("levy", "sobol", 0, 2.0)])
    assert row(text, "BOCK")[:3] == ["BOCK", "0", "–"]


def test_a_suite_of_nothing_but_failures_is_still_reported(tmp_path):
    text = page(tmp_path, [run("levy", "paper", 0, 1.0, status="failed", evaluations=0, error="oh")])
    assert row(section(text, "### Evaluations"), "BOCK") == ["BOCK", "0", "0", "1", "–"]


def test_additive_bo_is_the_best_group_size_of_each_function(tmp_path):
    bests = {"additive-1": (9.0, 3.0), "additive-4": (5.0, 7.0), "additive-10": (6.0, 8.0)}
    runs = [run(p, m, 0, best) for m, pair in bests.items() for p, best in zip(("branin", "levy"), pair, strict=True)]
    text = page(tmp_path, runs)
    best = row(text, "Additive BO (best of p)")
    assert best[2:] == ["5.00 ± 0.00 (p = 4)", "5.75 ± 0.93", "3.00 ± 0.00 (p = 1)", "2.32 ± 0.02"]
    gaps = row(section(text, "### Gap to the paper"), "Additive BO (best of p)")
    assert gaps[1:] == [f"{(5 - 5.75) / 0.93:+.1f} sd", f"{(3 - 2.32) / 0.02:+.1f} sd"]


def test_regrets_are_medians_above_the_minimum_of_each_instance(tmp_path):
    """Values 11, 22, 36 with minima 10, 20, 30 are regrets 1, 2, 6; by value the other method would look better."""
    runs = [run("levy-shifted", "paper", seed, best) for seed, best in enumerate((11.0, 22.0, 36.0))]
    runs += [run("levy-shifted", "sobol", 0, 15.0)]
    text = page(tmp_path, runs, SHIFTED, minimum=lambda _problem, _dim, seed: 10.0 * (seed + 1))
    assert row(text, "BOCK") == ["BOCK", "3", "**2 [1.5, 4]**"]
    assert row(text, "Sobol") == ["Sobol", "1", "5 [5, 5]"]


def test_a_problem_without_a_known_minimum_is_left_out_of_regrets_and_named(tmp_path):
    text = page(tmp_path, [run("levy-shifted", "paper", 0, 1.0)], SHIFTED, minimum=lambda *_: None)
    assert "the minimum is not known here: levy-shifted." in text


def test_the_minimum_of_a_plain_problem_is_known():
    assert known_minimum("levy", 20, 3) == pytest.approx(0.0, abs=1e-12)
    assert known_minimum("branin", 20, 0) == pytest.approx(0.397887, abs=1e-6)


def test_ranks_leave_out_and_name_methods_without_all_problems(tmp_path):
    ranks = section(page(tmp_path, [*complete(), run("levy", "matern", 0, 0.0)]), "### Ranks over problems")
    assert row(ranks, "BOCK") == ["BOCK", "1.00", "1"]
    assert row(ranks, "Sobol") == ["Sobol", "2.00", "2"]
    assert "runs are missing on some problem: Matern." in ranks
    # Two wins of two: chi-square 2 with one degree of freedom, P = 0.157
    assert "p = 0.16." in ranks
    assert "do not differ significantly" in ranks


def test_ranks_name_those_like_the_best_when_there_are_problems_enough(tmp_path):
    problems = tuple(f"p{i}" for i in range(12))
    suite = Suite("many", "Many", "", problems, {20: BUDGET}, ("default", "paper", "sobol"))
    runs = [
        run(p, m, 0, best)
        for i, p in enumerate(problems)
        for m, best in (("default", i % 2), ("paper", 1 - i % 2), ("sobol", 9))
    ]
    text = page(tmp_path, runs, suite)
    assert "Not significantly different from the best, cylbo: BOCK." in text
    assert [row(text, "method", nth)[2:] for nth in (0, 1)] == [list(problems[:6]), list(problems[6:])]


def test_only_the_section_of_seconds_depends_on_the_clock(tmp_path, saved_pictures):
    slow, fast = (page(tmp_path / str(cost), complete(cost=cost)) for cost in (0.5, 20.0))
    before, after = (text.split("\n## Seconds\n") for text in (slow, fast))
    assert before[0] == after[0]
    assert row(before[1], "BOCK") == ["BOCK", "0.500", "0.500"]
    assert row(after[1], "BOCK", 1) == ["BOCK", "4000.0 ± 0.0", "4000.0 ± 0.0"]
    pictures = {path.name for path in (tmp_path / "0.5").glob("*.svg")}
    assert pictures == {"table1-convergence-20.svg", "table1-rank-20.svg"}
    for kind in ("convergence", "rank"):
        one, other = ((tmp_path / cost / f"table1-{kind}-20.svg").read_bytes() for cost in ("0.5", "20.0"))
        assert one == other


def test_seconds_per_suggestion_are_those_of_the_second_half():
    made = Run(Key("levy", 20, 4, "paper", 0), "finished", np.ones(4), np.array([50.0, 60.0, 1.0, 3.0]))
    assert late_seconds(Cell((recorded(made),), np.ones(1))) == 2.0


# ---- which runs, and the index ----


def test_an_open_suite_shows_other_dimensions_and_budgets_in_sections_of_their_own(tmp_path):
    short = Run(Key("levy", 20, 7, "paper", 0), "finished", np.array([7.25]), np.ones(1))
    runs = [short, run("levy", "paper", 0, 1.5), run("levy", "paper", 0, 2.75, dim=21), run("ackley", "paper", 0, -9.0)]
    text = page(tmp_path, runs)
    for title, best, picture in (
        ("20 dimensions, 7 evaluations", "7.25", "table1-convergence-20-7.svg"),
        (f"20 dimensions, {BUDGET} evaluations", "1.50", "table1-convergence-20.svg"),
        (f"21 dimensions, {BUDGET} evaluations", "2.75", f"table1-convergence-21-{BUDGET}.svg"),
    ):
        section = text.split(f"## {title}")[1].split("\n## ")[0]
        assert best in section
        assert sum(value in section for value in ("7.25", "1.50", "2.75")) == 1
        assert picture in section
        assert (tmp_path / picture).exists()
        assert f"### Seconds in {title}" in text
    assert "-9.00" not in text
    index = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert f"1 runs belong to no suite and are in no table: ackley (20 dimensions, {BUDGET} evaluations)" in index


def test_an_open_suite_leaves_what_is_another_suites_own_to_that_one(tmp_path):
    small = Suite("small", "Small", "Few runs.", ("levy",), {4: 12}, ("sobol",), open=True)
    few = [Run(Key("levy", 4, 12, "sobol", 0), "finished", np.array([7.25]), np.ones(1))]
    report([*complete(), *few], tmp_path, [TABLE1, small])
    table1, of_small, index = (
        (tmp_path / f"{n}.md").read_text(encoding="utf-8") for n in ("table1", "small", "README")
    )
    assert "7.25" not in table1
    assert "7.25" in of_small
    assert "cylbo bench run small --dims 4 --seeds 1 --methods sobol" in index


@pytest.mark.parametrize(
    ("budget", "title"), [(BUDGET, "Table 1 (20 dimensions)"), (7, "Table 1 (20 dimensions, 7 evaluations)")]
)
def test_the_title_of_a_picture_says_the_budget_that_is_not_the_suites(budget, title):
    assert page_of(TABLE1, 20, budget, list(map(recorded, complete()))).title == title


def test_a_closed_suite_takes_the_runs_of_its_dimensions_and_budgets_only(tmp_path):
    closed = Suite("degree", "Degree", "", ("levy",), {20: BUDGET}, ("paper",))
    short = Run(Key("levy", 20, 7, "paper", 0), "finished", np.array([-9.0]), np.ones(1))
    runs = [short, run("levy", "paper", 0, 1.0), run("levy", "paper", 0, -9.0, dim=21)]
    assert "-9.00" not in page(tmp_path, runs, closed)
    assert "2 runs belong to no suite" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_a_closed_suite_shows_its_own_methods_only(tmp_path):
    closed = Suite("degree", "Degree", "", ("levy",), {20: BUDGET}, ("paper",))
    text = page(tmp_path, [run("levy", "paper", 0, 1.0), run("levy", "sobol", 0, 0.0)], closed)
    assert "Sobol" not in text


def test_suites_without_runs_get_no_page(tmp_path):
    paths = report(complete(), tmp_path, [TABLE1, SHIFTED])
    assert {path.name for path in paths if path.suffix == ".md"} == {"README.md", "table1.md"}
    assert sorted(paths) == sorted(tmp_path.iterdir())
    assert "[Table 1](table1.md)" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_two_dimensions_make_a_picture_of_scalability(tmp_path):
    suite = Suite("scalability", "S", "", ("levy",), {20: BUDGET, 50: BUDGET}, ("paper",), timing=True)
    text = page(tmp_path, [run("levy", "paper", 0, 1.0), run("levy", "paper", 0, 1.0, dim=50)], suite)
    assert {path.name for path in tmp_path.glob("*.svg")} == {"scalability-scalability.svg"}
    assert "evaluations" not in text.partition("## Seconds")[0]


def test_runs_that_were_stopped_are_not_in_the_picture_of_scalability():
    suite = Suite("scalability", "S", "", ("levy",), {20: BUDGET, 50: BUDGET}, ("paper", "matern"), timing=True)
    each = [(method, seed, dim) for method in ("paper", "matern") for seed in (0, 1) for dim in (20, 50)]
    whole = [run("levy", method, seed, 1.0, dim=dim) for method, seed, dim in each]
    stopped = [
        replace(r, status="timeout") if r.key.dim == 50 and (r.key.method == "paper" or r.key.seed) else r
        for r in whole
    ]
    pages = [page_of(suite, dim, BUDGET, [recorded(r) for r in stopped if r.key.dim == dim]) for dim in (20, 50)]
    (lines,) = scalability_panels(pages).values()
    assert {method: {dim: len(seconds) for dim, seconds in line.items()} for method, line in lines.items()} == {
        "paper": {20: 2},
        "matern": {20: 2, 50: 1},
    }


def test_a_suite_about_seconds_in_one_dimension_shows_what_was_reached_for_them(tmp_path):
    suite = Suite("efficiency", "S", "", ("levy",), {20: BUDGET}, ("paper",), timing=True)
    page(tmp_path, [run("levy", "paper", 0, 1.0)], suite)
    assert {path.name for path in tmp_path.glob("*.svg")} == {"efficiency-efficiency-20.svg"}


def test_errors_labels_and_versions_are_escaped(tmp_path):
    error = "Traceback:\n  File x\n\n</pre>\nValueError: `a` | <script>"
    runs = [*complete(), run("levy", "m|<b>`", 0, 1.0, status="failed", evaluations=0, error=error)]
    index = page(tmp_path, runs, name="README.md")
    assert "<script>" not in index + (tmp_path / "table1.md").read_text(encoding="utf-8")
    assert r"seed 0: ValueError: \`a\` \| &lt;script&gt;" in index
    assert "Traceback" not in index
    assert r"m\|&lt;b&gt;\`" in index
    assert r"numpy 2.0\|1" in index
    assert r"Linux &lt;x86\_64&gt;" in index


def test_the_index_names_machines_versions_and_commands(tmp_path):
    index = page(tmp_path, complete(), name="README.md")
    assert "8 runs: 8 finished, 0 stopped at the time limit, 0 failed." in index
    assert row(index, r"Linux &lt;x86\_64&gt;")[1:] == ["8", "1", "3.11.9", "8"]
    assert "cylbo bench run table1 --dims 20 --seeds 2 --methods paper sobol --out results.db" in index
    assert "## Failed runs" not in index


def test_the_same_runs_in_any_order_give_the_same_bytes(tmp_path, saved_pictures):
    runs = [*complete(), *(run("levy", "zebra", seed, 1.0, status="failed", error="x") for seed in range(2))]
    first = report(runs, tmp_path / "a", [TABLE1])
    second = report(runs[::-1], tmp_path / "b", [TABLE1])
    assert [path.name for path in first] == [path.name for path in second]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_no_runs_are_told_with_a_cure(tmp_path):
    with pytest.raises(ValueError, match="got none; make some with `cylbo bench run"):
        write_report([], tmp_path / "out", [TABLE1])
    assert not (tmp_path / "out").exists()


def test_every_suite_can_be_reported_with_its_own_problems(tmp_path):
    """The real minima, of problems that need no further package."""
    suites = [suite for suite in SUITES.values() if suite.name in ("shifted", "smoke")]
    runs = []
    for suite in suites:
        dim, budget = next(iter(suite.budgets.items()))
        for problem in suite.problems[:2]:
            runs += [
                Run(Key(problem, dim, budget, m, 0), "finished", np.array([9e4, 8e4]), np.ones(2))
                for m in suite.methods[:2]
            ]
    paths = report(runs, tmp_path, suites, known_minimum)
    assert {path.name for path in paths if path.suffix == ".md"} == {"README.md", "shifted.md", "smoke.md"}
    assert METHODS["default"].label in (tmp_path / "shifted.md").read_text(encoding="utf-8")

"""`cylbo bench` as a person meets it."""

import numpy as np
import pytest
from typer.testing import CliRunner

from cylbo.bench import problems
from cylbo.bench.methods import METHODS
from cylbo.bench.store import Key, Run, Store
from cylbo.bench.suites import ALL
from cylbo.cli import app


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")  # no wrapped lines
    monkeypatch.setattr("cylbo.bench.cli.console.width", 400, raising=False)
    return lambda *arguments: CliRunner().invoke(app, ["bench", *map(str, arguments)])


def test_list_names_every_suite_method_and_function(bench):
    outcome = bench("list")
    assert outcome.exit_code == 0, outcome.output
    for name in (*ALL, *METHODS, *problems.NAMES):
        assert name in outcome.output


def test_list_names_what_is_missing_and_how_to_get_it(bench, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "smac" else object())
    assert "pip install smac" in bench("list").output


def test_several_values_may_follow_one_option(bench, tmp_path):
    out = tmp_path / "r.db"
    arguments = ("--methods", "sobol", "--dims", 3, 4, "--functions", "levy", "rosenbrock", "--budget", 3, "--seeds", 1)
    outcome = bench("run", "smoke", *arguments, "--out", out, "--jobs", 2)
    assert outcome.exit_code == 0, outcome.output
    with Store(out) as store:
        assert {(run.key.problem, run.key.dim) for run in store.runs()} == {
            (name, dim) for name in ("levy", "rosenbrock") for dim in (3, 4)
        }


def test_the_suite_may_come_last(bench, tmp_path):
    out = tmp_path / "r.db"
    outcome = bench(
        "run", "--methods", "sobol", "--seeds", 1, "--out", out, "smoke", "--functions", "levy", "rosenbrock"
    )
    assert outcome.exit_code == 0, outcome.output
    with Store(out) as store:
        assert {(run.key.method, run.key.problem) for run in store.runs()} == {
            ("sobol", "levy"),
            ("sobol", "rosenbrock"),
        }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("run", "table7"), [*ALL, "'table7'"]),
        (("run", "smoke", "--methods", "sobol", "magic"), ["'magic'", "default", "saasbo", "cma"]),
        (("run", "smoke", "--functions", "sphere"), ["'sphere'", "levy-rotated", "hartmann6-sparse"]),
        (("run", "table1", "--dims", 30), ["dimensions 20, 50, 100", "30"]),
        (("run", "table1", "--dims", 3, "--budget", 5), ["hartmann6 needs at least 6 dimensions", "3"]),
        (("run", "bbob", "--dims", 41, "--budget", 5), ["20, 40, 80", "41"]),
        (("run", "noise", "--functions", "hartmann6, sd 0.2"), ["'hartmann6, sd 0.2'", "'hartmann6, sd 0.1'"]),
        (("run", "engineering", "--dims", 30, 61, "--budget", 5, "--functions", "truss, 24"), ["got 30, 61"]),
        (("report", "none.db"), ["none.db", "cylbo bench run SUITE"]),
        (("run", "smoke", "--seeds", 0), ["--seeds"]),
        (("run", "smoke", "--out", "no/such/folder/r.db"), ["no/such/folder"]),
    ],
)
def test_mistakes_are_told_with_what_is_known_and_change_nothing(bench, tmp_path, monkeypatch, arguments, expected):
    monkeypatch.chdir(tmp_path)
    outcome = bench(*arguments)
    assert outcome.exit_code == 2
    told = " ".join(outcome.output.replace("│", " ").split())
    for text in expected:
        assert text in told
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_told_with_its_cure_and_the_others_run(bench, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "cma" else object())
    out = tmp_path / "r.db"
    outcome = bench("run", "smoke", "--methods", "sobol", "cma", "--seeds", 1, "--out", out)
    assert outcome.exit_code == 0, outcome.output
    assert "skipped cma: pip install cma" in outcome.output
    with Store(out) as store:
        assert {run.key.method for run in store.runs()} == {"sobol"}


def test_practical_suites_are_run_like_the_others_and_say_whom_they_skip(bench, tmp_path):
    out = tmp_path / "r.db"
    arguments = ("--methods", "default", "cma", "--budget", 5, "--seeds", 1, "--out", out)
    outcome = bench("run", "batches", "--functions", "levy-shifted", "--batches", 2, 4, *arguments)
    assert outcome.exit_code == 0, outcome.output
    assert "skipped cma: does not handle batches" in outcome.output
    assert "default on levy-shifted 20-d seed 0, 4 at a time: best" in outcome.output
    assert bench("run", "failures", "--functions", "levy, corner", *arguments).exit_code == 0
    with Store(out) as store:
        assert {(run.key.problem, run.key.batch) for run in store.runs()} == {
            ("levy, corner", 1),
            ("levy-shifted", 2),
            ("levy-shifted", 4),
        }


def test_merge_takes_the_runs_of_other_files(bench, tmp_path):
    for name, seed in (("a", 0), ("b", 1), ("c", 1)):
        with Store(tmp_path / f"{name}.db") as store:
            store.add(Run(Key("levy", 3, 1, "sobol", seed), "finished", np.array([ord(name)]), np.array([0.0])))
    outcome = bench("merge", *(tmp_path / f"{name}.db" for name in "abc"))
    assert outcome.exit_code == 0, outcome.output
    with Store(tmp_path / "a.db") as store:
        assert [(run.key.seed, run.best) for run in store.runs()] == [(0, ord("a")), (1, ord("c"))]


def test_merge_refuses_a_missing_file_and_keeps_the_first_as_it_was(bench, tmp_path):
    with Store(tmp_path / "a.db") as store:
        store.add(Run(Key("levy", 3, 1, "sobol", 0), "finished", np.array([1.0]), np.array([0.0])))
    before = (tmp_path / "a.db").read_bytes()
    assert bench("merge", tmp_path / "a.db", tmp_path / "none.db").exit_code == 2
    assert (tmp_path / "a.db").read_bytes() == before


def test_a_package_with_an_extra_is_told_once_in_full_and_ready_for_the_shell(bench, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in ("jax", "numpyro") else object())
    cure = "pip install 'botorch[fully_bayesian]'"
    outcome = bench("run", "smoke", "--methods", "saasbo", "--out", tmp_path / "r.db")
    assert f"skipped saasbo: {cure}\n" in outcome.output
    assert cure in bench("list").output

"""The table of runs: what is written is read, mistakes are explained, and the pages on record are its pages."""

import csv
import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cylbo.bench import figures
from cylbo.bench.record import PARTS, Record, evaluations_of_points, recorded
from cylbo.bench.store import Key, Run, Store
from cylbo.bench.table import CURVES, RUNS, TableError, joined, on_record, read_table, write_table
from cylbo.cli import app

RESULTS = Path(__file__).parent.parent / "docs" / "results"

numbers = st.floats(allow_nan=False)
words = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)
names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=8)
counts = st.integers(0, 10**6)
records = st.builds(
    Record,
    key=st.builds(Key, words, counts, counts, words, counts, st.just(1)),
    batch=counts,
    status=st.sampled_from(["finished", "timeout", "failed"]),
    time_limit=numbers,
    evaluations=counts,
    best=numbers,
    minimum=st.none() | numbers,
    true_value=st.none() | numbers,
    seconds=numbers,
    late_seconds=numbers,
    late_crashes=counts,
    versions=st.dictionaries(names, st.text("0123456789.+cpu", min_size=1, max_size=8), max_size=3),
    machine=words,
    cores=words,
    threads=words,
    python=words,
    error=words,
    curve=st.lists(numbers, min_size=PARTS + 1, max_size=PARTS + 1).map(tuple)
    | numbers.map(lambda number: (number,) * (PARTS + 1)),
)


def made(values, *, budget=None, seed=0, status="finished", limit=1800.0, method="sobol", seconds=None):
    values = np.array(values, dtype=float)
    seconds = np.ones(len(values)) if seconds is None else np.array(seconds)
    key = Key("levy", 3, budget or len(values), method, seed)
    return Run(key, status, values, seconds, "", limit, {"versions": {"numpy": "2.0"}, "cores": 2})


def record(*args, **kwargs):
    return recorded(made(*args, **kwargs), lambda *_: 0.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(records, max_size=4, unique_by=lambda r: r.name))
def test_what_is_written_is_read(tmp_path_factory, some):
    folder = tmp_path_factory.mktemp("table")
    write_table(some, folder)
    assert {r.name: r for r in read_table(folder)} == {r.name: r for r in some}


def test_the_same_runs_in_any_order_give_the_same_text(tmp_path):
    some = [record([3.0, 1.0], seed=seed, method=m) for seed in (10, 2) for m in ("sobol", "cma")]
    one, other = write_table(some, tmp_path / "a"), write_table(some[::-1], tmp_path / "b")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


# ---- what is kept of a run ----


def test_halves_quarters_and_eighths_of_a_budget_are_among_the_points():
    for budget in (100, 200, 400, 600):
        at = evaluations_of_points(budget)
        assert len(at) == PARTS + 1
        assert (at[0], at[-1]) == (1, budget)
        assert at[8::8] == [math.ceil(budget * part / 8) for part in range(1, 9)]


def test_a_curve_is_the_best_so_far_above_the_minimum_with_five_digits():
    kept = recorded(made([5.0, 7.0, 2.0 + 1 / 3, 4.0]), lambda *_: 2.0)
    at = evaluations_of_points(4)
    assert kept.curve == tuple({1: 3.0, 2: 3.0, 3: 0.33333, 4: 0.33333}[n] for n in at)
    assert (kept.best, kept.minimum, kept.evaluations) == (2.0 + 1 / 3, 2.0, 4)
    assert kept.best_after(2) == 5.0
    assert kept.best_after(4) == 2.0 + 1 / 3


def test_a_stopped_run_keeps_its_last_number_to_the_end_of_the_budget():
    kept = record([9.0, 4.0], budget=128, status="timeout")
    assert kept.curve == (9.0, *[4.0] * PARTS)
    assert (kept.evaluations, kept.stopped) == (2, True)


def test_crashes_are_no_values_and_count_after_sixty_evaluations():
    values = [math.nan, *[8.0] * 58, math.nan, math.nan, 3.0, math.nan]
    kept = record(values)
    assert (kept.best, kept.late_crashes) == (3.0, 2)
    assert kept.curve[0] == math.inf


def test_a_run_without_values_has_neither_a_best_nor_a_curve():
    kept = record([], budget=5, status="failed")
    assert (kept.best, kept.seconds, set(kept.curve)) == (math.inf, 0.0, {math.inf})


def test_late_seconds_are_the_median_of_the_second_half():
    kept = record([1.0] * 4, seconds=[50.0, 60.0, 1.0, 3.0])
    assert (kept.seconds, kept.late_seconds) == (114.0, 2.0)


# ---- mistakes ----


@pytest.fixture
def folder(tmp_path):
    write_table([record([3.0, 2.0, 1.0], seed=seed) for seed in range(3)], tmp_path)
    return tmp_path


def changed(path, line, column, text):
    """The file with another text in that cell; line 1 is the header."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    rows[line - 1][rows[0].index(column)] = text
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


@pytest.mark.parametrize(
    ("file", "line", "column", "text", "told"),
    [
        (RUNS, 3, "seed", "x", "line 3 of .*: seed should be a whole number; it is 'x'"),
        (RUNS, 2, "seed", "-1", "seed should be a whole number; it is '-1'"),
        (RUNS, 2, "status", "done", "status should be one of finished, timeout, failed; it is 'done'"),
        (RUNS, 2, "best", "", "best should be a number; it is ''"),
        (RUNS, 2, "versions", "numpy", "versions should be names and versions, .*; it is 'numpy'"),
        (RUNS, 3, "seed", "0", "line 3 of .* is the second row for sobol on levy .* seed 0; delete one of the two"),
        (RUNS, 2, "seed", "7", "has no row for sobol on levy in 3 dimensions, 3 evaluations, seed 7"),
        (RUNS, 1, "best", "worst", "should begin with the columns problem,dimension"),
        (CURVES, 2, "0", "", "column 0 of a curve should be a number; it is empty"),
        (CURVES, 4, "64", "?", "line 4 of .*: 64 should be a number or nothing; it is '\\?'"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_place(folder, file, line, column, text, told):
    changed(folder / file, line, column, text)
    with pytest.raises(TableError, match=told):
        read_table(folder)


def test_a_missing_file_and_a_torn_line_are_told(folder):
    with pytest.raises(TableError, match=r"could not be read: .*; `cylbo bench report RESULTS.db -o "):
        read_table(folder / "nowhere")
    (folder / CURVES).write_text((folder / CURVES).read_text()[:-30])
    with pytest.raises(TableError, match=r"line 4 of .* should have 71 cells; it has"):
        read_table(folder)


def test_a_run_given_twice_is_not_written(folder):
    before = (folder / RUNS).read_bytes()
    with pytest.raises(TableError, match="seed 5 was given twice"):
        write_table([record([1.0], seed=5), record([2.0], seed=5, budget=1)], folder)
    assert (folder / RUNS).read_bytes() == before


# ---- joining, and what need not be made again ----


def test_of_a_run_that_both_have_the_second_counts():
    found = joined([record([1.0], seed=0), record([2.0], seed=1)], [record([3.0], seed=1)])
    assert {r.key.seed: r.best for r in found} == {0: 1.0, 1: 3.0}


def test_on_record_is_what_was_finished_or_stopped_at_no_shorter_limit(tmp_path):
    limits = {0: ("finished", 9.0), 1: ("timeout", 60.0), 2: ("timeout", 59.0), 3: ("failed", 60.0)}
    write_table([record([1.0], seed=s, status=status, limit=t) for s, (status, t) in limits.items()], tmp_path)
    assert {key.seed for key, _ in on_record(tmp_path / RUNS, time_limit=60.0)} == {0, 1, 3}
    assert {key.seed for key, _ in on_record(tmp_path / RUNS, time_limit=60.0, retry_failed=True)} == {0, 1}


def bench(*arguments):
    outcome = CliRunner().invoke(app, ["bench", *map(str, arguments)])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


@pytest.fixture
def _no_pictures(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(figures, "save", lambda _figure, path: path.touch())


def test_runs_on_record_are_not_made_again(tmp_path):
    key = Key("levy", 3, 2, "sobol", 0)
    write_table([recorded(dataclasses.replace(made([1.0, 1.0]), key=key))], tmp_path)
    options = ("--methods", "sobol", "--dims", 3, "--functions", "levy", "--budget", 2, "--seeds", 2, "--jobs", 1)
    bench("run", "smoke", *options, "--out", tmp_path / "r.db", "--known", tmp_path / RUNS)
    with Store(tmp_path / "r.db") as store:
        assert [run.key.seed for run in store.runs()] == [1]


def test_a_known_table_that_is_not_there_is_told_and_nothing_is_made(tmp_path):
    outcome = CliRunner().invoke(
        app, ["bench", "run", "smoke", "--out", str(tmp_path / "r.db"), "--known", str(tmp_path / RUNS)]
    )
    assert outcome.exit_code == 2
    assert "could not be read" in " ".join(outcome.output.replace("│", " ").split())
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("_no_pictures")
def test_a_report_adds_the_runs_of_a_store_to_the_table_and_needs_none_to_be_written_again(tmp_path):
    out = tmp_path / "report"
    for seed in (0, 1):
        with Store(tmp_path / f"{seed}.db") as store:
            key = Key("rosenbrock", 4, 12, "sobol", seed)
            store.add(dataclasses.replace(made([3.0] * 12), key=key))
        bench("report", tmp_path / f"{seed}.db", "-o", out)
    assert [r.key.seed for r in read_table(out)] == [0, 1]
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    bench("report", "-o", out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert {"smoke.md", "README.md", RUNS, CURVES} <= before.keys()


# ---- the results of this repository ----


@pytest.mark.usefixtures("_no_pictures")
def test_the_pages_on_record_are_those_of_the_table_on_record(tmp_path):
    for name in (RUNS, CURVES):
        (tmp_path / name).write_bytes((RESULTS / name).read_bytes())
    bench("report", "-o", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in RESULTS.iterdir())
    for path in tmp_path.iterdir():
        if path.suffix != ".svg":
            assert path.read_bytes() == (RESULTS / path.name).read_bytes(), path.name


def test_the_results_on_record_are_small():
    sizes = {path.name: path.stat().st_size for path in RESULTS.iterdir()}
    assert sizes[RUNS] + sizes[CURVES] < 2_000_000
    assert all(0 < size <= 100_000 for name, size in sizes.items() if name.endswith(".svg"))

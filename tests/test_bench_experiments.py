"""The pages of the experiments beside the suites: numbers computed by hand, and the commands."""

import dataclasses
import math

import pytest

from cylbo.bench import experiment_tables as tables
from cylbo.bench import figures
from cylbo.bench.experiment_pages import write_experiments
from cylbo.bench.experiments import EXPERIMENTS, experiment_commands
from cylbo.bench.record import PARTS, Record
from cylbo.bench.store import Key

NAMED = {experiment.name: experiment for experiment in EXPERIMENTS}
CURVE = tuple(float(PARTS - k) for k in range(PARTS + 1))


def record(problem, method="default", seed=0, *, best=0.0, batch=1, minimum=None, budget=200, **more):
    record = Record(
        Key(problem, 20, budget, method, seed), batch, "finished", 1800.0, budget, best, minimum, None, 60.0, 0.1, 0
    )
    return dataclasses.replace(record, **{"curve": CURVE, **more})


def test_the_ratio_of_batches_is_the_geometric_mean_over_common_seeds():
    def of(regrets, batch=8):
        return [record("levy-shifted", seed=s, best=r, minimum=0.0, batch=batch) for s, r in enumerate(regrets)]

    alone = of([2.0, 4.0, 1e-9], batch=1)
    # Ratios 2 and 8; what is below 0.0001 counts as that, so the third is 0.001 / 0.0001 = 10
    assert tables._ratio(of([4.0, 32.0]), alone, 200) == pytest.approx(4.0)
    assert tables._ratio(of([4.0, 2.0, 1e-3]), alone, 200) == pytest.approx(10.0 ** (1 / 3))
    assert math.isnan(tables._ratio([], alone, 200))


def test_batches_take_the_single_runs_of_their_suite_and_no_others():
    single = [record("levy-shifted", budget=budget) for budget in (100, 200)]
    eight = record("levy-shifted", batch=8)
    assert NAMED["batches"].its(single) == []
    assert NAMED["batches"].its([*single, eight]) == [single[1], eight]


def test_of_several_budgets_the_largest_is_shown():
    short, long = record("levy, smooth", budget=100), record("levy, smooth", budget=200)
    assert NAMED["failures"].its([short, long, record("levy")]) == [long]


def test_the_share_of_crashes_is_that_of_the_evaluations_after_sixty():
    """14 and 28 of 140 are 10 % and 20 %."""
    runs = [record("levy, smooth", seed=s, minimum=0.0, late_crashes=n) for s, n in enumerate((14, 28))]
    assert "| levy, smooth | 2 | **15% (20%)** |" in tables.crashes({"levy, smooth": {"default": runs}})


def test_noise_is_told_by_the_true_value_at_the_point_recommended_by_then():
    """The curve falls by one from 64 to 0 over the budget; after 50 of 200 evaluations it is at 48."""
    runs = [record("hartmann6, sd 0.1", seed=s, minimum=-3.0 - s, best=-99.0) for s in (0, 2)]
    lines = tables.noise({"hartmann6, sd 0.1": {"default": runs}})
    assert "| cylbo | 2 | **44.00 ± 1.00** | **28.00 ± 1.00** | **12.00 ± 1.00** | **-4.00 ± 1.00** | 1 |" in lines


def test_instances_won_are_counted_over_common_seeds():
    row = {
        "default": [record("rod, 30", seed=s, best=1.0) for s in range(3)],
        "cma": [record("rod, 30", "cma", s, best=b) for s, b in enumerate((2.0, 0.5))],
    }
    assert "| rod, 30 | 1 of 2 |" in tables.engineering({"rod, 30": row})


def test_a_stopped_run_is_marked_in_the_minutes():
    runs = [record("rod, 30", seconds=120.0), record("rod, 30", seed=1, seconds=240.0, status="timeout", evaluations=9)]
    assert tables._minutes(runs) == "3 †9"


def test_methods_with_another_limit_or_fewer_seeds_have_a_command_of_their_own():
    runs = [record("levy, smooth", "default", s) for s in (0, 1)] + [record("levy, smooth", "optuna-gp")]
    runs += [record("levy, smooth", "optuna-tpe", time_limit=7.0)]
    two, one, short = experiment_commands(NAMED["failures"], runs)
    assert two.endswith("--functions 'levy, smooth' --time-limit 1800 --seeds 2 --methods default --out results.db")
    assert one.endswith("--seeds 1 --methods optuna-gp --out results.db")
    assert short.endswith("--time-limit 7 --seeds 1 --methods optuna-tpe --out results.db")


def test_experiments_of_a_page_stand_on_it_with_their_pictures(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(figures, "save", lambda _figure, path: path.touch())
    shown = []
    for name, problem in (("noise", "hartmann6, sd 0.1"), ("failures", "levy, smooth"), ("mixed", "svm, digits")):
        minimum = None if name == "mixed" else 0.0
        shown.append(
            (
                NAMED[name],
                [
                    record(problem, m, minimum=minimum)
                    for m in ("default", "optuna-tpe")
                    if name != "noise" or m == "default"
                ],
            )
        )
    paths = write_experiments(shown, tmp_path)
    assert sorted(paths) == sorted(tmp_path.iterdir())
    page = (tmp_path / "practical.md").read_text(encoding="utf-8")
    for name in ("noise", "failures", "mixed"):
        assert f"](practical-{name}.svg)" in page
        assert NAMED[name].about in page
    assert "no more than two standard errors" in page

"""Runs in processes of their own: finished, stopped by the clock, failed, interrupted."""

import re
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest

from cylbo.bench.functions import problem
from cylbo.bench.methods import METHODS
from cylbo.bench.objective import Objective
from cylbo.bench.runner import make_runs, plan
from cylbo.bench.store import Key, Run, Store
from cylbo.bench.suites import SUITES, suite

SOBOL = Key("levy-shifted", 3, 6, "sobol", 1)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "r.db") as store:
        yield store


def make(store, *keys, time_limit=120.0, **options):
    make_runs(keys, store, jobs=2, threads=1, time_limit=time_limit, **options)
    return {run.key: run for run in store.runs()}


def test_a_run_holds_every_evaluation_in_order(store):
    run = make(store, SOBOL)[SOBOL]
    here = Objective(problem("levy-shifted", 3, instance=1), 3, 6)
    METHODS["sobol"].spend(here, 1)
    assert run.status == "finished"
    np.testing.assert_array_equal(run.values, here.values)
    assert run.seconds.shape == (6,)
    assert (run.seconds >= 0).all()


def test_a_run_says_where_it_was_made(store):
    environment = make(store, SOBOL)[SOBOL].environment
    assert environment["threads"] == 1
    assert environment["cores"] >= 1
    assert environment["versions"]["numpy"] == np.__version__
    assert environment["machine"]


def test_at_the_time_limit_what_was_reached_is_kept_and_marked(store):
    slow = Key("levy", 20, 2000, "paper", 0)
    run = make(store, slow, time_limit=8.0)[slow]
    assert run.status == "timeout"
    assert 1 <= len(run.values) < 2000
    assert run.values[0] == problem("levy", 20).at_center
    assert run.environment["versions"]["cylbo"]


def test_a_run_that_raises_is_recorded_with_its_traceback_and_the_others_go_on(store):
    broken = Key("nonsense", 3, 6, "sobol", 0)
    runs = make(store, broken, SOBOL)
    assert runs[broken].status == "failed"
    assert "Traceback" in runs[broken].error
    assert "nonsense" in runs[broken].error
    assert runs[SOBOL].status == "finished"


def test_a_process_that_dies_is_recorded_as_failed_with_its_last_words(store):
    dead = Key("levy", 3, 6, "no such method", 0)
    run = make(store, dead)[dead]
    assert run.status == "failed"
    assert "ended with code 1" in run.error
    assert "no such method" in run.error


def test_every_run_is_announced_and_reported(store):
    begun, ended = [], []
    keys = [SOBOL._replace(seed=s) for s in range(3)]
    make(store, *keys, on_start=begun.append, on_end=lambda run: ended.append(run.key))
    assert begun == keys
    assert sorted(ended) == keys


def test_finished_runs_are_not_made_again(store):
    store.add(Run(SOBOL, "finished", np.array([1.0]), np.array([0.0])))
    todo = plan([SOBOL, SOBOL._replace(seed=2)], store, time_limit=10.0)
    assert todo.missing == [SOBOL._replace(seed=2)]
    assert todo.finished == 1


@pytest.mark.parametrize(("limit", "again"), [(10.0, False), (11.0, True), (9.0, False)])
def test_a_run_stopped_by_the_clock_is_made_again_only_with_more_time(store, limit, again):
    store.add(Run(SOBOL, "timeout", np.array([1.0]), np.array([0.0]), time_limit=10.0))
    assert bool(plan([SOBOL], store, time_limit=limit).missing) is again


def test_a_failed_run_is_made_again_only_when_asked(store):
    store.add(Run(SOBOL, "failed", np.array([]), np.array([])))
    assert plan([SOBOL], store, time_limit=10.0).missing == []
    assert plan([SOBOL], store, time_limit=10.0, retry_failed=True).missing == [SOBOL]


def test_a_method_without_its_package_is_skipped_and_the_package_named(store, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "cma" else object())
    todo = plan([SOBOL, SOBOL._replace(method="cma")], store, time_limit=10.0)
    assert todo.skipped == {"cma": "pip install cma"}
    assert todo.missing == [SOBOL]


def test_crashes_batches_and_recommended_points_are_kept(store):
    crashing = Key("levy, half-space", 20, 24, "default", 0, 8)
    noisy = Key("hartmann6, sd 0.5", 20, 12, "default", 1)
    runs = make(store, crashing, noisy)
    assert [run.error for run in runs.values()] == ["", ""]
    values = runs[crashing].values
    assert 0 < np.isnan(values).sum() < 24
    assert runs[crashing].best == np.nanmin(values)
    assert [n for n, _ in runs[noisy].recommended] == [10, 12]
    # In 20 dimensions Hartmann6 is the mean over three blocks: between its minimum -3.32 and 0 without noise
    assert all(-3.33 < value < 0 for _, value in runs[noisy].recommended)
    assert runs[crashing].recommended == ()


def test_a_run_on_models_of_scikit_learn_names_its_version(store):
    tuned = Key("boosting, wine", 7, 2, "default", 0)
    assert make(store, tuned)[tuned].environment["versions"]["scikit-learn"]


def test_a_method_is_skipped_with_a_word_where_it_cannot_do_what_a_problem_asks(store):
    keys = [Key("levy, corner", 20, 9, name, 0) for name in ("cma", "default")]
    todo = plan([*keys, SOBOL._replace(batch=4)], store, time_limit=10.0)
    assert todo.missing == [keys[1]]
    assert todo.skipped == {"cma": "does not handle crashes", "sobol": "does not handle batches"}


def test_practical_problems_are_run_in_their_own_dimension_alone():
    keys = suite("engineering").keys(seeds=1, methods=["sobol"])
    assert {(key.problem, key.dim) for key in keys} == {
        (name, int(name.split(", ")[1])) for name in suite("engineering").problems
    }
    assert {key.problem for key in suite("engineering").keys(dims=[60])} == {"rover, 60", "lasso, 60"}
    with pytest.raises(ValueError, match="expected a dimension that one of its problems has, got 61"):
        suite("engineering").keys(dims=[61], budget=9)


def test_batches_are_asked_for_by_size():
    assert {key.batch for key in suite("batches").keys(seeds=1)} == {1, 2, 4, 8}
    assert {key.batch for key in suite("batches").keys(seeds=1, batches=[8])} == {8}
    assert {key.batch for key in suite("shifted").keys(seeds=1)} == {1}


def test_suites_name_known_methods_problems_and_dimensions():
    for s in SUITES.values():
        assert set(s.methods) <= set(METHODS)
        for name in s.problems:
            for dim in s.budgets:
                assert problem(name, dim).dim == dim


def test_an_early_stop_leaves_every_method_with_as_many_seeds():
    keys = suite("table1").keys(dims=[20], seeds=2)
    half = len(keys) // 2
    assert {key.seed for key in keys[:half]} == {0}
    assert {key._replace(seed=0) for key in keys[half:]} == set(keys[:half])


def test_a_foreign_dimension_needs_a_budget():
    with pytest.raises(ValueError, match="dimensions 20, 50, 100; for 30 give a budget"):
        suite("table1").keys(dims=[30])
    assert {key.budget for key in suite("table1").keys(dims=[30], budget=7)} == {7}


def test_unknown_suites_and_methods_list_the_known_ones():
    with pytest.raises(ValueError, match=r"table1, table2.*smoke"):
        suite("table3")


# Interruption: the real command, stopped by a real signal

COMMAND = [sys.executable, "-m", "cylbo", "bench", "run", "smoke", "--methods", "sobol", "matern", "--jobs", "2"]


def without_seconds(folder):
    """The report's text, less the sections that depend on the clock."""
    return {
        path.name: re.sub(r"(?ms)^#+ Seconds.*?(?=^#|\Z)", "", path.read_text()) for path in sorted(folder.glob("*.md"))
    }


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_and_repeated_gives_the_report_of_an_undisturbed_run(tmp_path, sign):
    undisturbed, disturbed = tmp_path / "a.db", tmp_path / "b.db"
    subprocess.run([*COMMAND, "--out", undisturbed], check=True, capture_output=True)

    victim = subprocess.Popen(
        [*COMMAND, "--out", disturbed], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    for line in victim.stdout:
        if line.startswith("finished"):
            break
    victim.send_signal(sign)
    rest = victim.communicate()[0]
    assert victim.returncode == (130 if sign is signal.SIGINT else -signal.SIGKILL), rest
    with Store(disturbed, create=False) as store:
        kept = store.runs()
    with Store(undisturbed, create=False) as store:
        assert 0 < len(kept) < len(store.runs())
    assert {run.status for run in kept} == {"finished"}

    again = subprocess.run([*COMMAND, "--out", disturbed], check=True, capture_output=True, text=True)
    assert f"{len(kept)} are in" in again.stdout
    for path in (undisturbed, disturbed):
        command = [sys.executable, "-m", "cylbo", "bench", "report", path, "-o", path.with_suffix("")]
        subprocess.run(command, check=True, capture_output=True)
    assert without_seconds(tmp_path / "a") == without_seconds(tmp_path / "b")
    with Store(disturbed) as b, Store(undisturbed) as a:
        for ours, theirs in zip(b.runs(), a.runs(), strict=True):
            assert ours.key == theirs.key
            np.testing.assert_array_equal(ours.values, theirs.values)


def test_workers_do_not_outlive_a_killed_runner(tmp_path):
    long = [*COMMAND[:-2], "--budget", "2000", "--jobs", "1", "--out", tmp_path / "r.db", "--functions", "levy-shifted"]
    long[long.index("sobol")] = "matern"
    victim = subprocess.Popen(long, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    runner = psutil.Process(victim.pid)
    while not (workers := runner.children(recursive=True)):
        assert victim.poll() is None
    victim.kill()
    victim.wait()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive


def test_smoke_runs_every_method_to_its_end(tmp_path):
    out = tmp_path / "r.db"
    command = [sys.executable, "-m", "cylbo", "bench", "run", "smoke", "--seeds", "1", "--jobs", "2", "--out", out]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    with Store(out) as store:
        runs = store.runs()
    assert {run.key.method for run in runs} == set(suite("smoke").methods), done.stdout
    assert [run.error for run in runs if run.status != "finished"] == []
    assert {len(run.values) for run in runs} == {12}

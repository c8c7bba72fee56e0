"""The commands of a report make the runs of its file: none fewer, and no others but seeds between them."""

import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

from cylbo.bench.commands import commands
from cylbo.bench.record import recorded
from cylbo.bench.runner import TIME_LIMIT, Plan
from cylbo.bench.store import Key, Run
from cylbo.bench.suites import SUITES
from cylbo.cli import app

TABLE1, EFFICIENCY, SHIFTED = (SUITES[name] for name in ("table1", "efficiency", "shifted"))


def made(keys, *, stopped=(), slow=()):
    """Runs of these keys; of those that were `stopped` and of the `slow` ones, limits and seconds."""
    stopped, slow = dict(stopped), dict(slow)
    runs = [
        Run(
            key,
            "timeout" if key in stopped else "finished",
            np.ones(1),
            np.array([slow.get(key, 1.0)]),
            "",
            stopped.get(key, 7200.0),
        )
        for key in keys
    ]
    return list(map(recorded, runs))


@pytest.fixture
def asked_for(monkeypatch, tmp_path):
    """A line to the keys and the time limit that `cylbo bench run` takes from it."""
    caught = []

    def plan(keys, _store, *, time_limit, retry_failed):
        caught.append((set(keys), time_limit))
        return Plan([], 0, {})

    monkeypatch.setattr("cylbo.bench.cli.plan", plan)
    monkeypatch.chdir(tmp_path)

    def ask(line):
        program, *words = shlex.split(line)
        assert program == "cylbo"
        outcome = CliRunner().invoke(app, words)
        assert outcome.exit_code == 0, outcome.output
        return caught.pop()

    return ask


def test_the_commands_make_the_runs_of_the_file_and_no_others(asked_for):
    keys = {
        *TABLE1.keys(methods=["default", "cma"], seeds=5),
        *TABLE1.keys(methods=["paper"], dims=[20], seeds=10),
        *TABLE1.keys(methods=["paper"], dims=[20], seeds=2, problems=["levy"], budget=7),
        *TABLE1.keys(methods=["botorch"], dims=[100], seeds=1),
        *TABLE1.keys(methods=["botorch"], dims=[100], seeds=3, problems=["levy", "branin"]),
        *TABLE1.keys(methods=["sobol"], dims=[13], seeds=1, budget=50),
        *SHIFTED.keys(methods=["default", "turbo"], seeds=2, dims=[20]),
    }
    shown = [
        (suite, made([key for key in keys if key.problem in suite.problems])) for suite in (TABLE1, EFFICIENCY, SHIFTED)
    ]
    lines = commands(shown)
    answers = [asked_for(line) for line in lines]
    assert set().union(*(found for found, _ in answers)) == keys
    assert sum(len(found) for found, _ in answers) == len(keys)  # none twice, though two suites show them
    assert lines == commands([(suite, runs[::-1]) for suite, runs in shown])


def test_runs_that_differ_in_method_and_dimension_only_share_a_command():
    keys = TABLE1.keys(methods=["cma", "default"], dims=[100, 20], seeds=5)
    assert commands([(TABLE1, made(keys))]) == [
        "cylbo bench run table1 --dims 20 100 --seeds 5 --methods default cma --out results.db"
    ]


def test_what_is_not_the_suites_own_is_said():
    keys = TABLE1.keys(methods=["sobol"], dims=[20], seeds=1, budget=7, problems=["levy", "branin"])
    assert commands([(TABLE1, made(keys))]) == [
        "cylbo bench run table1 --dims 20 --budget 7 --seeds 1 --functions branin levy --methods sobol --out results.db"
    ]


def test_the_largest_limit_that_stopped_a_run_is_said_and_no_other(asked_for):
    keys = TABLE1.keys(methods=["botorch", "cma"], dims=[20], seeds=2)
    stopped = [(Key("levy", 20, 200, "botorch", 0), 600.0), (Key("branin", 20, 200, "botorch", 1), 900.5)]
    lines = commands([(TABLE1, made(keys, stopped=stopped))])
    assert {next(iter(found)).method: limit for found, limit in map(asked_for, lines)} == {
        "botorch": 900.5,
        "cma": TIME_LIMIT,
    }
    assert sum("--time-limit" in line for line in lines) == 1


@pytest.mark.parametrize("stopped", [[], [(Key("branin", 20, 200, "paper", 0), 120.0)]])
def test_a_limit_does_not_cut_off_what_was_finished(asked_for, stopped):
    keys = TABLE1.keys(methods=["paper"], dims=[20], seeds=1)
    slow = [(Key("levy", 20, 200, "paper", 0), 3000.0)]
    (line,) = commands([(TABLE1, made(keys, stopped=stopped, slow=slow))])
    assert asked_for(line) == (set(keys), 7200.0)


def test_a_run_that_is_not_slow_needs_no_limit():
    keys = TABLE1.keys(methods=["paper"], dims=[20], seeds=1)
    (line,) = commands([(TABLE1, made(keys, slow=[(keys[0], 1700.0)]))])
    assert "--time-limit" not in line


def test_seeds_go_up_to_the_highest(asked_for):
    keys = [Key("levy", 20, 200, "cma", seed) for seed in (0, 2)]
    (line,) = commands([(TABLE1, made(keys))])
    assert asked_for(line)[0] == {*keys, Key("levy", 20, 200, "cma", 1)}


def test_methods_that_this_version_does_not_know_are_in_no_command(asked_for):
    keys = TABLE1.keys(methods=["sobol", "zebra"], dims=[20], seeds=1)
    (line,) = commands([(TABLE1, made(keys))])
    assert asked_for(line)[0] == {key for key in keys if key.method == "sobol"}

"""Variants of the default method are compared on what all of them have runs of."""

import subprocess
import sys

import pytest
from benchmarks.ablation import comparison

from cylbo.bench.store import Key, Store


def test_variants_are_compared_on_the_problems_and_seeds_that_all_have_runs_of():
    found = {
        Key("f", 2, 9, "a", 0): 1.0,
        Key("f", 2, 9, "b", 0): 4.0,
        Key("f", 2, 9, "a", 1): 1e-9,
        Key("g", 2, 9, "a", 0): 1e-9,
    }
    lines = comparison(found, ["a", "b"]).splitlines()
    assert "on 1 problems" in lines[0]
    ratios = [float(line.split("|")[-2]) for line in lines[2:]]
    assert ratios == pytest.approx([0.5, 2.0])  # about the geometric mean of 1 and 4
    assert [float(line.split("|")[-3]) for line in lines[2:]] == [1.0, 2.0]


def test_the_command_makes_the_runs_of_variants_once_and_compares_them(tmp_path):
    out = tmp_path / "runs.db"
    words = ["--variants", "default", "isotropic", "--problems", "levy-shifted", "--dims", "3", "--budget", "6"]
    command = [sys.executable, "-m", "benchmarks.ablation", *words, "--seeds", "1", "--out", out]
    first, again = (subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(2))
    assert first == again
    assert "on 1 problems" in first
    with Store(out) as store:
        assert [(run.key.method, len(run.values)) for run in store.runs()] == [("default", 6), ("isotropic", 6)]

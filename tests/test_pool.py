"""Runs in processes of their own: all are made, what fails is said and counted, what stops us stops them."""

import os
import signal

import numpy as np
import pytest
from benchmarks.ablation import comparison
from benchmarks.pool import append_line, make_each, read_lines


def reciprocal(key):
    return 1.0 / key, os.getpid(), os.environ["OPENBLAS_NUM_THREADS"]


def test_every_key_is_worked_on_in_a_process_of_its_own_with_one_thread(capfd):
    made = {}
    assert make_each("halves", reciprocal, [1, 0, 4], made.__setitem__, jobs=1) == 1
    assert {key: value for key, (value, _, _) in made.items()} == {1: 1.0, 4: 0.25}
    assert len({os.getpid(), *(pid for _, pid, _ in made.values())}) == 3
    assert {threads for _, _, threads in made.values()} == {"1"}
    said = capfd.readouterr().err
    assert "0 failed" in said
    assert "ZeroDivisionError" in said
    assert "in reciprocal" in said  # where


def leave_a_mark(key):
    folder, name = key
    (folder / name).touch()
    return name


def test_what_has_not_begun_is_dropped_when_a_result_cannot_be_kept(tmp_path):
    def keep(key, made):
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        make_each("marks", leave_a_mark, [(tmp_path, str(i)) for i in range(8)], keep, jobs=1)
    assert len(list(tmp_path.iterdir())) < 8


def press_ctrl_c(folder):
    """As the terminal does: for the whole group, of which the parent keeps what it has."""
    if folder is not None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getppid(), signal.SIGINT)
        (folder / "done").touch()


def test_ctrl_c_ends_with_one_line_when_the_work_that_has_begun_is_done(tmp_path, capfd):
    with pytest.raises(SystemExit, match="the same command makes the others"):
        make_each("marks", press_ctrl_c, [tmp_path, None], lambda key, made: None, jobs=1)
    assert (tmp_path / "done").exists()
    assert "Traceback" not in capfd.readouterr().err


def test_variants_are_compared_on_the_problems_and_seeds_that_all_have_runs_of():
    found = {("a", "f", 2, 9, 0): 1.0, ("b", "f", 2, 9, 0): 4.0, ("a", "f", 2, 9, 1): 1e-9, ("a", "g", 2, 9, 0): 1e-9}
    lines = comparison(found, ["a", "b"]).splitlines()
    assert "on 1 problems" in lines[0]
    ratios = [float(line.split("|")[-2]) for line in lines[2:]]
    assert ratios == pytest.approx([0.5, 2.0])  # about the geometric mean of 1 and 4
    np.testing.assert_array_equal([float(line.split("|")[-3]) for line in lines[2:]], [1.0, 2.0])


def test_a_line_that_was_cut_short_costs_no_other(tmp_path, capsys):
    path = tmp_path / "runs.jsonl"
    assert read_lines(path) == []
    for value in (1, [2, "é"]):
        append_line(value, path)
    path.write_bytes(path.read_bytes() + b'{"key": \xc3')  # killed in the middle of writing
    append_line({"a": None}, path)
    assert read_lines(path) == [1, [2, "é"], {"a": None}]
    assert f"line 3 of {path} is damaged" in capsys.readouterr().err
